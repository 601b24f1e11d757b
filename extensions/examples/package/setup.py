from setuptools import setup

from flambeau.utils.cpp_extension import BuildExtension, CppExtension

setup(
    packages=["gated"],
    ext_modules=[CppExtension("gated._gate", ["gated/gate.cpp", "gated/module.cpp"], define_macros=[("SCALE", "2")])],
    cmdclass={"build_ext": BuildExtension},
)
