"""The device in another process is an accelerator like any other; only its own tests shall see it.

The oneDNN plug-in serves the CPU before the CPU plug-in, whose kernels the other tests are to test.
"""

import os

os.environ.setdefault("FLAMBEAU_DISABLED_PLUGINS", "flambeau-remote-process, flambeau-mkldnn")
