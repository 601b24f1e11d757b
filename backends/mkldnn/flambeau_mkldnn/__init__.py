"""The oneDNN plug-in of flambeau: faster kernels for the CPU's strided tensors.

flambeau loads ``flambeau_mkldnn.plugin`` when a tensor is first made on the device.  What it keeps between calls
can be seen and bounded with :mod:`flambeau_mkldnn.cache`.
"""

__version__ = "0.1.0"
