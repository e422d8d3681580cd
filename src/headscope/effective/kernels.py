"""What a layer writes with effective attention, in one or two kernels on a GPU.

`output` imports this file where there is Triton, which comes with torch for GPUs. A program of a kernel takes the Gram
matrix G = VᵀV of some keys of one head of values. All arithmetic is float64. G is scaled to a diagonal of ones, and
inverted in memory, 16 rows at a time. The inverse X is judged by what it is, however it was found. With ρ = ‖X·G − I‖,
in the norm of Frobenius, ‖G⁻¹‖ ≤ ‖X‖ / (1 − ρ), so that ‖G‖·‖X‖ / (1 − ρ) bounds the square of the condition number of
V. Full rank is proved under the rank rule where

    ‖G‖·‖X‖·tolerance² + ρ < 0.98.

The rest up to 1 covers rounding: at most n·√d·u·‖G‖·‖X‖ of G and d·u·‖G‖·‖X‖ of X·G, with u = 2⁻⁵³. Where the rule is
met, n > d and tolerance = n·2⁻²³, both together are at most (1/√d + 1/d) / 128 < 0.016.

Error: a layer writes z·(X·G) instead of z = A·V, and a kernel says that it failed where that is off by more than the
eps of the model's dtype: where every query sees the same keys, ρ must be below it; under a causal mask, z·(X·G) − z
itself, of each chunk of rows over its largest z.
"""

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

MAX_VALUE = 128
"""Number of value dimensions up to which the matrices of a head fit a program."""

BLOCK = 16
"""Rows of a matrix, and keys, that a program takes at a time: the least that a GPU multiplies as matrices."""

CHUNK = 16
"""Rows of a causal mask that share the inverse of the Gram matrix of the keys before them."""

ROWS = 64
"""Rows of all heads that share values, of one chunk, that a program projects."""

Values = Float[Tensor, "batch value_head key value"]


def project_values(values: Values, unit: float) -> tuple[Values, Int[Tensor, " 1"]]:
    """Return V·(G⁻¹·G), with zeros for hidden keys in V, and whether that failed for any head, which keeps its V.

    `unit` is the rank rule's tolerance for one key; 0 asks for no proof of full rank.
    """
    batch, groups, count, value = values.shape
    wide, spare, failed = _prepare(values, batch * groups)
    projected, size = torch.empty(values.shape, dtype=values.dtype, device=values.device), spare.shape[-1]
    with torch.cuda.device(values.device):
        _project_head[batch * groups,](
            wide,
            projected,
            failed,
            spare,
            groups,
            count,
            value,
            size // BLOCK,
            *wide.stride()[:3],
            unit * max(count, value),
            torch.finfo(values.dtype).eps,
            D=size,
            B=BLOCK,
            num_warps=4,
            num_stages=1,
        )
    return projected, failed


def project_rows(
    context: Float[Tensor, "batch head query value"], values: Values, unit: float
) -> tuple[Float[Tensor, "batch head query value"], Int[Tensor, " 1"]]:
    """Return z·(G⁻¹·G) under a causal mask, in place of z, the `context` A·V, and whether that failed for any row.

    The first d rows keep A·V: for them A_eff is A, where the values of their keys are independent. `unit` is as above.
    """
    batch, groups, count, value = values.shape
    group, chunks = context.shape[1] // groups, _count_chunks(values)
    number = batch * groups * chunks
    wide, spare, failed = _prepare(values, number)
    size, strides = spare.shape[-1], wide.stride()[:3]
    terms = torch.empty(number, CHUNK, size, dtype=torch.float64, device=values.device)
    written = context.float().contiguous()
    rows = max(CHUNK, min(ROWS, triton.next_power_of_2(group * CHUNK)))
    with torch.cuda.device(values.device):
        _factor_prefix[number,](
            wide,
            failed,
            spare,
            terms,
            groups,
            count,
            value,
            size // BLOCK,
            chunks,
            *strides,
            unit,
            D=size,
            B=BLOCK,
            CHUNK=CHUNK,
            num_warps=4,
            num_stages=1,
        )
        _project_chunk[number, -(-group * CHUNK // rows)](
            written,
            wide,
            failed,
            spare,
            terms,
            groups,
            group,
            count,
            value,
            chunks,
            *strides,
            torch.finfo(values.dtype).eps,
            D=size,
            CHUNK=CHUNK,
            ROWS=rows,
            num_warps=8,
            num_stages=1,
        )
    return written, failed


def count_bytes(values: Values, *, causal: bool) -> int:
    """Return the memory that G, G⁻¹ and G⁻¹·G of all problems take."""
    problems = values.shape[0] * values.shape[1] * (_count_chunks(values) if causal else 1)
    return 3 * 8 * problems * _padded_size(values) ** 2


def _count_chunks(values: Values) -> int:
    return -(-(values.shape[-2] - values.shape[-1]) // CHUNK)


def _padded_size(values: Values) -> int:
    return max(BLOCK, int(triton.next_power_of_2(values.shape[-1])))


def _prepare(values: Values, number: int) -> tuple[Values, Float[Tensor, "problem 3 size size"], Int[Tensor, " 1"]]:
    """Return the values in float32, memory for G, G⁻¹ and G⁻¹·G of each problem, and the flag of failure."""
    size = _padded_size(values)
    wide = values.float()  # Triton 3.6 cannot multiply 16-bit numbers as float64
    wide = wide if wide.stride(-1) == 1 else wide.contiguous()
    spare = torch.empty(number, 3, size, size, dtype=torch.float64, device=values.device)
    return wide, spare, torch.zeros(1, dtype=torch.int32, device=values.device)


@triton.jit
def _project_head(
    values,
    projected,
    failed,
    spare,
    groups,
    count,
    value,
    blocks,
    batch_stride,
    head_stride,
    key_stride,
    tolerance,
    eps,
    D: tl.constexpr,
    B: tl.constexpr,
):
    """V·(X·G) of one head of values."""
    head = tl.program_id(0)
    values += (head // groups).to(tl.int64) * batch_stride + head % groups * head_stride
    spare += head.to(tl.int64) * 3 * D * D
    proved, rho = _factor(values, blocks, key_stride, count, value, spare, 0.0, tolerance, D, B)
    exact = proved & (rho < eps)
    tl.store(failed, 1, mask=exact == 0)
    d, b = tl.arange(0, D), tl.arange(0, B)
    projected += head.to(tl.int64) * count * value
    for start in range(0, count, B):
        rows, there = (start + b)[:, None], (start + b < count)[:, None]
        product = tl.zeros((B, D), tl.float64)
        for k in range(blocks):
            filled = there & (k * B + b < value)[None, :]
            columns = tl.load(values + rows * key_stride + k * B + b[None, :], mask=filled, other=0.0).to(tl.float64)
            identity = tl.load(spare + 2 * D * D + k * B * D + b[:, None] * D + d[None, :])
            product = tl.dot(columns, identity, product, out_dtype=tl.float64)
        inside = there & (d < value)[None, :]
        row = tl.load(values + rows * key_stride + d[None, :], mask=inside, other=0.0)
        rounded = tl.where(exact, product.to(tl.float32), row).to(projected.dtype.element_ty)
        tl.store(projected + rows * value + d[None, :], rounded, mask=inside)


@triton.jit
def _factor_prefix(
    values,
    failed,
    spare,
    terms,
    groups,
    count,
    value,
    blocks,
    chunks,
    batch_stride,
    head_stride,
    key_stride,
    unit,
    D: tl.constexpr,
    B: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """G and X = G⁻¹ of the keys before a chunk, and N of the keys T of the chunk.

    The Gram matrix of a row that sees the first p of them is G + Σ tᵢtᵢᵀ, and its inverse is X − Σ nᵢnᵢᵀ, with
    N = C⁻¹·T·X and C·Cᵀ = I + T·X·Tᵀ. Its least singular value is at least that of G.
    """
    problem = tl.program_id(0)
    head, begin = problem // chunks, value + problem % chunks * CHUNK
    values += (head // groups).to(tl.int64) * batch_stride + head % groups * head_stride
    spare += problem.to(tl.int64) * 3 * D * D
    d, b, t = tl.arange(0, D), tl.arange(0, B), tl.arange(0, CHUNK)
    rows, there = values + (begin + t)[:, None] * key_stride, (begin + t < count)[:, None]
    chunk = tl.load(rows + d[None, :], mask=there & (d < value)[None, :], other=0.0).to(tl.float64)
    added = tl.sum(tl.sum(chunk * chunk, 1), 0)  # ‖TᵀT‖ ≤ ‖T‖²
    proved, _ = _factor(values, blocks, key_stride, begin, value, spare, added, unit * (begin + CHUNK), D, B)
    tl.store(failed, 1, mask=proved == 0)
    term = tl.zeros((CHUNK, D), tl.float64)
    for k in range(blocks):
        columns = tl.load(rows + k * B + b[None, :], mask=there & (k * B + b < value)[None, :], other=0.0).to(
            tl.float64
        )
        inverse = tl.load(spare + D * D + k * B * D + b[:, None] * D + d[None, :])
        term = tl.dot(columns, inverse, term, out_dtype=tl.float64)
    chunk = tl.load(rows + d[None, :], mask=there & (d < value)[None, :], other=0.0).to(tl.float64)
    small = tl.where(t[:, None] == t[None, :], 1.0, 0.0).to(tl.float64)
    small = tl.dot(term, tl.trans(chunk), small, out_dtype=tl.float64)
    for k in range(CHUNK):
        column = tl.sum(tl.where(t[None, :] == k, small, 0.0), 1)
        small_row = tl.sum(tl.where(t[:, None] == k, small, 0.0), 0)
        term_row = tl.sum(tl.where(t[:, None] == k, term, 0.0), 0)
        pivot = tl.sum(tl.where(t == k, column, 0.0), 0)
        share = tl.where(t > k, column / pivot, 0.0)
        small -= share[:, None] * small_row[None, :]
        term -= share[:, None] * term_row[None, :]
    pivots = tl.sum(tl.where(t[:, None] == t[None, :], small, 0.0), 1)
    terms += problem.to(tl.int64) * CHUNK * D
    tl.store(terms + t[:, None] * D + d[None, :], term / tl.sqrt(pivots)[:, None])


@triton.jit
def _project_chunk(
    contexts,
    values,
    failed,
    spare,
    terms,
    groups,
    group,
    count,
    value,
    chunks,
    batch_stride,
    head_stride,
    key_stride,
    eps,
    D: tl.constexpr,
    CHUNK: tl.constexpr,
    ROWS: tl.constexpr,
):
    """z ← z·X·G of the rows of a chunk, with X and G of the keys that each sees, for heads that share their values."""
    problem = tl.program_id(0)
    head, begin = problem // chunks, value + problem % chunks * CHUNK
    d, r, t = tl.arange(0, D), tl.arange(0, ROWS), tl.arange(0, CHUNK)
    own, row = tl.program_id(1) * (ROWS // CHUNK) + r // CHUNK, begin + r % CHUNK
    there = ((own < group) & (row < count))[:, None] & (d < value)[None, :]
    contexts += ((head * group + own).to(tl.int64) * count + row)[:, None] * value + d[None, :]
    z = tl.load(contexts, mask=there, other=0.0).to(tl.float64)
    values += (head // groups).to(tl.int64) * batch_stride + head % groups * head_stride
    seen = (begin + t < count)[:, None] & (d < value)[None, :]
    chunk = tl.load(values + (begin + t)[:, None] * key_stride + d[None, :], mask=seen, other=0.0).to(tl.float64)
    term = tl.load(terms + problem.to(tl.int64) * CHUNK * D + t[:, None] * D + d[None, :])
    spare += problem.to(tl.int64) * 3 * D * D + d[:, None] * D + d[None, :]
    counted = t[None, :] <= (r % CHUNK)[:, None]
    coefficients = tl.where(counted, tl.dot(z, tl.trans(term), out_dtype=tl.float64), 0.0)
    solved = tl.dot(z, tl.load(spare + D * D), out_dtype=tl.float64) - tl.dot(coefficients, term, out_dtype=tl.float64)
    coefficients = tl.where(counted, tl.dot(solved, tl.trans(chunk), out_dtype=tl.float64), 0.0)
    product = tl.dot(solved, tl.load(spare), out_dtype=tl.float64)
    product = tl.dot(coefficients, chunk, product, out_dtype=tl.float64)
    error = tl.max(tl.max(tl.where(there, tl.abs(product - z), 0.0), 1), 0)
    largest = tl.max(tl.max(tl.abs(z), 1), 0)
    tl.store(failed, 1, mask=(error <= eps * largest) == 0)
    tl.store(contexts, product.to(tl.float32), mask=there)


@triton.jit
def _factor(values, blocks, stride, count, value, spare, added, tolerance, D: tl.constexpr, B: tl.constexpr):
    """Write G, X = G⁻¹ and X·G of the first `count` keys; return whether full rank is proved, and ρ.

    `added` is a bound on what later keys add to ‖G‖. NaN and infinite values prove nothing.
    """
    d, b = tl.arange(0, D), tl.arange(0, B)
    panel = b[:, None] * D + d[None, :]
    inverse = spare + D * D
    size = _write_gram(values, blocks, stride, count, value, spare, D, B)
    tl.debug_barrier()
    across = 1 / tl.sqrt(tl.load(spare + d * (D + 1)))
    for i in range(blocks):
        down = 1 / tl.sqrt(tl.load(spare + (i * B + b) * (D + 1)))
        tl.store(inverse + i * B * D + panel, tl.load(spare + i * B * D + panel) * down[:, None] * across[None, :])
    tl.debug_barrier()
    _invert(inverse, blocks, D, B)
    square = tl.zeros((B, D), tl.float64)
    for i in range(blocks):
        down = 1 / tl.sqrt(tl.load(spare + (i * B + b) * (D + 1)))
        rows = tl.load(inverse + i * B * D + panel) * down[:, None] * across[None, :]
        tl.store(inverse + i * B * D + panel, rows)  # each thread writes what it read
        square += tl.where((i * B + b < value)[:, None] & (d < value)[None, :], rows * rows, 0.0)
    tl.debug_barrier()
    off = tl.zeros((B, D), tl.float64)
    for i in range(blocks):
        rows = tl.zeros((B, D), tl.float64)
        for k in range(blocks):
            tile = tl.load(inverse + i * B * D + k * B + b[:, None] * D + b[None, :])
            rows = tl.dot(tile, tl.load(spare + k * B * D + panel), rows, out_dtype=tl.float64)
        tl.store(inverse + D * D + i * B * D + panel, rows)
        rows -= tl.where(d[None, :] - i * B == b[:, None], 1.0, 0.0)
        off += rows * rows
    tl.debug_barrier()
    rho = tl.sqrt(tl.sum(tl.sum(off, 1), 0))
    bound = (tl.sqrt(tl.sum(tl.sum(size, 1), 0)) + added) * tl.sqrt(tl.sum(tl.sum(square, 1), 0))
    return bound * tolerance * tolerance + rho < 0.98, rho


@triton.jit
def _write_gram(values, blocks, stride, count, value, gram, D: tl.constexpr, B: tl.constexpr):
    """Write VᵀV, with ones on the diagonal beyond the value dimensions; the squares that are returned add to ‖G‖²."""
    d, b = tl.arange(0, D), tl.arange(0, B)
    size = tl.zeros((B, D), tl.float64)
    for i in range(blocks):
        rows = tl.zeros((B, D), tl.float64)
        for start in range(0, count, B):
            seen = (start + b < count)[:, None]
            pointers = values + (start + b)[:, None] * stride
            rows_of_keys = tl.load(pointers + d[None, :], mask=seen & (d < value)[None, :], other=0.0).to(tl.float64)
            inside = seen & (i * B + b < value)[None, :]
            columns = tl.load(pointers + i * B + b[None, :], mask=inside, other=0.0).to(tl.float64)
            rows = tl.dot(tl.trans(columns), rows_of_keys, rows, out_dtype=tl.float64)
        size += rows * rows
        rows = tl.where((d[None, :] - i * B == b[:, None]) & (d >= value)[None, :], 1.0, rows)
        tl.store(gram + i * B * D + b[:, None] * D + d[None, :], rows)
    return size


@triton.jit
def _invert(matrix, blocks, D: tl.constexpr, B: tl.constexpr):
    """Replace a positive definite matrix with ones on its diagonal by its inverse: Gauss–Jordan, B rows at a time."""
    d, b = tl.arange(0, D), tl.arange(0, B)
    panel = b[:, None] * D + d[None, :]
    for k in range(blocks):
        inside = (d // B == k)[None, :]
        tile = _invert_tile(tl.load(matrix + k * B * (D + 1) + b[:, None] * D + b[None, :]), B)
        pivots = tl.load(matrix + k * B * D + panel)
        pivots = tl.where(inside, tl.where(d[None, :] - k * B == b[:, None], 1.0, 0.0), pivots)
        pivots = tl.dot(tile, pivots, out_dtype=tl.float64)
        for i in range(blocks):
            left = tl.load(matrix + i * B * D + k * B + b[:, None] * D + b[None, :])
            rows = tl.load(matrix + i * B * D + panel)
            rows = tl.where(inside, 0.0, rows)
            rows -= tl.dot(left, pivots, out_dtype=tl.float64)
            rows = tl.where(i == k, pivots, rows)
            tl.debug_barrier()  # every thread has read what is overwritten now
            tl.store(matrix + i * B * D + panel, rows)
        tl.debug_barrier()


@triton.jit
def _invert_tile(tile, B: tl.constexpr):
    """Return the inverse of a positive definite matrix whose diagonal is at most 1; NaN if it is not positive."""
    b = tl.arange(0, B)
    for k in range(B):
        row = tl.sum(tl.where(b[:, None] == k, tile, 0.0), 0)
        column = tl.sum(tl.where(b[None, :] == k, tile, 0.0), 1)
        pivot = tl.sum(tl.where(b == k, row, 0.0), 0)
        share = tl.where(pivot > 0, 1 / pivot, float("nan"))
        row = tl.where(b == k, pivot - 1, row)  # so that row and column k become theirs over the pivot
        column = tl.where(b == k, pivot - 1, column)
        tile -= (column * share)[:, None] * row[None, :]
    return tl.where(b[:, None] == b[None, :], 2 - tile, -tile)
