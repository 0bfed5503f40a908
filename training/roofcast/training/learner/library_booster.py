"""XGBoost inference by the library's C interface; its Python package would import SciPy and scikit-learn."""

import ctypes
import functools
import json
import weakref
from collections.abc import Mapping
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

import numpy as np

from roofcast.features.queries import FloatArray, SingleArray

_MARGIN: Final = 0
_CONTRIBUTIONS: Final = 2
_LENGTH: Final = ctypes.c_uint64


class LibraryBooster:
    """A booster of one output.

    `model`: XGBoost's UBJSON.

    References
    ----------
    XGBoost, "C API Tutorial" and ``c_api.h``.
    """

    def __init__(self, model: bytes, n_thread: int) -> None:
        self._arguments = model, n_thread
        library, self._handle = load_library(), ctypes.c_void_p()
        _check(library.XGBoosterCreate(None, _LENGTH(0), ctypes.byref(self._handle)))
        weakref.finalize(self, library.XGBoosterFree, self._handle)
        _check(library.XGBoosterLoadModelFromBuffer(self._handle, model, _LENGTH(len(model))))
        _check(library.XGBoosterSetParam(self._handle, b"nthread", str(n_thread).encode()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments

    def predict(self, X: FloatArray) -> SingleArray:
        """Return the predictions: shape (n_row,)."""
        options = {"type": _MARGIN, "missing": np.nan, "cache_id": 0}
        return self._predict("XGBoosterPredictFromDense", _array_interface(X), options, None)

    def shap_values(self, X: FloatArray) -> SingleArray:
        """Return the SHAP values of each column, then the base value: shape (n_row, n_column + 1)."""
        library, matrix = load_library(), ctypes.c_void_p()
        options = json.dumps({"missing": np.nan, "nthread": self._arguments[1]}).encode()
        _check(library.XGDMatrixCreateFromDense(_array_interface(X), options, ctypes.byref(matrix)))
        try:
            return self._predict("XGBoosterPredictFromDMatrix", matrix, {"type": _CONTRIBUTIONS})
        finally:
            library.XGDMatrixFree(matrix)

    def to_json(self) -> Any:
        """Return the model as XGBoost's JSON."""
        length, content = _LENGTH(), ctypes.c_char_p()
        outputs = ctypes.byref(length), ctypes.byref(content)
        _check(load_library().XGBoosterSaveModelToBuffer(self._handle, b'{"format": "json"}', *outputs))
        return json.loads(ctypes.string_at(content, length.value))

    def _predict(self, function: str, rows: object, options: Mapping[str, object], *proxy: None) -> SingleArray:
        options = {"training": False, "iteration_begin": 0, "iteration_end": 0, "strict_shape": False, **options}
        shape, values = ctypes.POINTER(_LENGTH)(), ctypes.POINTER(ctypes.c_float)()
        n_dimension = _LENGTH()
        outputs = ctypes.byref(shape), ctypes.byref(n_dimension), ctypes.byref(values)
        predict = getattr(load_library(), function)
        _check(predict(self._handle, rows, json.dumps(options).encode(), *proxy, *outputs))
        if not values:  # no rows
            return np.empty(0, dtype=np.float32)
        return np.ctypeslib.as_array(values, tuple(shape[: n_dimension.value])).copy()


@functools.cache
def load_library() -> ctypes.CDLL:
    """Return XGBoost's shared library, from where its Python package finds it.

    Raises `ModuleNotFoundError` if XGBoost is not installed.
    """
    package = find_spec("xgboost")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("XGBoost is not installed: pip install xgboost-cpu")
    spec = spec_from_file_location("xgboost_libpath", Path(package.origin).with_name("libpath.py"))
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018  (for the type checker)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    library = ctypes.CDLL(module.find_lib_path()[0])
    library.XGBGetLastError.restype = ctypes.c_char_p
    return library


def _check(status: int) -> None:
    if status:
        raise ValueError(f"XGBoost: {load_library().XGBGetLastError().decode()}")


def _array_interface(X: FloatArray) -> bytes:
    return json.dumps(X.__array_interface__).encode()
