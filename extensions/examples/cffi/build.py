"""Build the C functions into the module _ext.my_lib, beside this file: python build.py"""

from flambeau.utils.ffi import create_extension

ffi = create_extension(
    name="_ext.my_lib", headers="src/my_lib.h", sources=["src/my_lib.c"], relative_to=__file__, verbose=False
)

if __name__ == "__main__":
    ffi.build()
