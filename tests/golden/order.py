# SPDX-License-Identifier: Apache-2.0
"""The order in which Cleave's loader shuffles samples, in plain Python, so that it does not come from the code it is held against."""

M32 = (1 << 32) - 1


def philox(key, counter):
    """Philox4x32-10: Salmon, Moraes, Dror, Shaw 2011, section 3.3."""
    k0, k1 = key
    c0, c1, c2, c3 = counter
    for _ in range(10):
        p, q = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (q >> 32) ^ c1 ^ k0, q & M32, (p >> 32) ^ c3 ^ k1, p & M32
        k0, k1 = (k0 + 0x9E3779B9) & M32, (k1 + 0xBB67AE85) & M32
    return [c0, c1, c2, c3]


def order(seed, epoch, n):
    """The order of n samples in an epoch: Fisher-Yates from the end, words from stream 2 of the seed."""
    def words():
        block = 0
        while True:
            yield from philox((seed & M32, (seed >> 32) ^ 2), (block, 0, epoch & M32, epoch >> 32))
            block += 1

    source = words()

    def below(m):
        limit = M32 - (1 << 32) % m
        while True:
            word = next(source)
            if word <= limit:
                return word % m

    samples = list(range(n))
    for i in range(n - 1, 0, -1):
        k = below(i + 1)
        samples[i], samples[k] = samples[k], samples[i]
    return samples
