"""The CPU plug-in of flambeau: vectorised, multi-threaded C kernels.

Importing this package builds no tables and opens no library; flambeau loads
``flambeau_cpu.plugin`` when a tensor is first made on the device.
"""

import os

__version__ = "0.1.0"

# By default OpenMP's threads spin between parallel regions.  Beside another busy process that
# made training ten and more times slower; a short spin costs nothing measurable.
if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
    os.environ["GOMP_SPINCOUNT"] = "10000"
