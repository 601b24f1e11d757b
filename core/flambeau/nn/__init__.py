"""Neural networks: modules, their functions, initialisation and helpers."""

from . import functional as functional, grad as grad, init as init, utils as utils
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
from .parameter import *
from .pooling import *
from .rnn import *
from .sparse import *
from .upsampling import *
