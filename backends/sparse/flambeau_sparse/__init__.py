"""The sparse plug-in of flambeau: the layout ``sparse_coo`` on the CPU.

flambeau loads ``flambeau_sparse.plugin`` when a tensor is first made on the device.
"""

__version__ = "0.1.0"
