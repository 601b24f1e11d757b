"""The CPU plug-in of flambeau: vectorised, multi-threaded C kernels.

Importing this package builds no tables and opens no library; flambeau loads
``flambeau_cpu.plugin`` when a tensor is first made on the device.
"""

__version__ = "0.1.0"
