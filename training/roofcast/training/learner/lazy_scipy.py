"""Functions of SciPy that are imported by their first call: a server answers most questions without them."""

# ruff: noqa: PLC0415

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.linalg import cho_factor, cho_solve, solve_triangular
    from scipy.linalg.lapack import dpotri
    from scipy.optimize import minimize
    from scipy.sparse import csr_array
else:

    def cho_factor(*args: Any, **options: Any) -> Any:
        """Factorise a positive definite matrix."""
        from scipy import linalg

        return linalg.cho_factor(*args, **options)

    def cho_solve(*args: Any, **options: Any) -> Any:
        """Solve a linear system by its Cholesky factor."""
        from scipy import linalg

        return linalg.cho_solve(*args, **options)

    def solve_triangular(*args: Any, **options: Any) -> Any:
        """Solve a triangular linear system."""
        from scipy import linalg

        return linalg.solve_triangular(*args, **options)

    def dpotri(*args: Any, **options: Any) -> Any:
        """Invert a matrix by its Cholesky factor."""
        from scipy.linalg import lapack

        return lapack.dpotri(*args, **options)

    def minimize(*args: Any, **options: Any) -> Any:
        """Minimise a function."""
        from scipy import optimize

        return optimize.minimize(*args, **options)

    def csr_array(*args: Any, **options: Any) -> Any:
        """Return a sparse matrix."""
        from scipy import sparse

        return sparse.csr_array(*args, **options)


__all__ = ["cho_factor", "cho_solve", "csr_array", "dpotri", "minimize", "solve_triangular"]
