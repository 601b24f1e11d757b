"""The commands of ``python -m flambeau``, one module each: ``add`` declares its arguments, ``run`` carries it out."""
