"""The device in another process is an accelerator like any other; only its own tests shall see it."""

import os

os.environ.setdefault("FLAMBEAU_DISABLED_PLUGINS", "flambeau-remote-process")
