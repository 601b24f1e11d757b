"""Neural networks: modules, their functions, initialisation and helpers."""

from . import functional as functional, grad as grad, init as init, parallel as parallel, utils as utils
from .activation import *
from .batchnorm import *
from .container import *
from .conv import *
from .distance import *
from .dropout import *
from .linear import *
from .loss import *
from .module import *
from .normalization import *
from .padding import *
from .parallel import DataParallel as DataParallel
from .parameter import *
from .pooling import *
from .rnn import *
from .sparse import *
from .upsampling import *
