/* The reading algorithm of yaffjit's jitted getters in plain C: what a compiled program would do with the same bytes.

   Source: docs/format.md. Requires: well-formed buffers of the message types of tree.proto.
   The chain root.mid.leaf is read again at each use, as C++ code with getters does; the `hoisted` functions read it once. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MAX_CHILD_ID = 10, CHILD_OFFSET = 9 * 8 };

static inline uint16_t load16(const uint8_t *p) { uint16_t v; memcpy(&v, p, sizeof v); return v; }
static inline uint32_t load32(const uint8_t *p) { uint32_t v; memcpy(&v, p, sizeof v); return v; }
static inline int32_t loadi32(const uint8_t *p) { int32_t v; memcpy(&v, p, sizeof v); return v; }
static inline uint64_t load64(const uint8_t *p) { uint64_t v; memcpy(&v, p, sizeof v); return v; }

/* The value of a field of a dynamic message, flat or sparse as its header says; NULL where it isn't set. */
static inline const uint8_t *field(const uint8_t *message, uint32_t id, uint32_t flat_offset) {
    if (message == NULL) return NULL;
    uint32_t header = load16(message);
    if ((id << 2 | 0x8003u) < header) return message + 2 + flat_offset;
    if (header & 0x8000u || (id << 2 | 3u) >= header) return NULL;
    const uint8_t *end = message + loadi32(message - 4);
    uint32_t at = id < 32 ? end[-(int32_t)id] : load16(end - 2 * (int32_t)id + 31);
    return at ? message + at : NULL;
}

static inline const uint8_t *child(const uint8_t *message) {
    const uint8_t *slot = field(message, MAX_CHILD_ID, CHILD_OFFSET);
    if (slot == NULL) return NULL;
    uint32_t offset = load32(slot);
    return offset ? message + offset : NULL;
}

static inline uint64_t number(const uint8_t *message, uint32_t id) {
    const uint8_t *slot = field(message, id, (id - 1) * 8);
    return slot ? load64(slot) : 0;
}

static inline const uint8_t *root(const uint8_t *data, const int64_t *offsets, int64_t row) {
    const uint8_t *buffer = data + offsets[row];
    return buffer + load32(buffer);
}

uint64_t sum_chain(const uint8_t *data, const int64_t *offsets, int64_t count) {
    uint64_t total = 0;
    for (int64_t row = 0; row < count; row++) {
        const uint8_t *r = root(data, offsets, row);
        total += number(child(child(r)), 1) + number(child(child(r)), 2) + number(child(child(r)), 3)
               + number(child(child(r)), 4) + number(child(child(r)), 5) + number(child(child(r)), 6)
               + number(child(child(r)), 7) + number(child(child(r)), 8) + number(child(child(r)), 9);
    }
    return total;
}

uint64_t sum_hoisted(const uint8_t *data, const int64_t *offsets, int64_t count) {
    uint64_t total = 0;
    for (int64_t row = 0; row < count; row++) {
        const uint8_t *leaf = child(child(root(data, offsets, row)));
        total += number(leaf, 1) + number(leaf, 2) + number(leaf, 3) + number(leaf, 4) + number(leaf, 5)
               + number(leaf, 6) + number(leaf, 7) + number(leaf, 8) + number(leaf, 9);
    }
    return total;
}

void store_chain(const uint8_t *data, const int64_t *offsets, int64_t count, uint64_t *out) {
    for (int64_t row = 0; row < count; row++, out += 9) {
        const uint8_t *r = root(data, offsets, row);
        out[0] = number(child(child(r)), 1);
        out[1] = number(child(child(r)), 2);
        out[2] = number(child(child(r)), 3);
        out[3] = number(child(child(r)), 4);
        out[4] = number(child(child(r)), 5);
        out[5] = number(child(child(r)), 6);
        out[6] = number(child(child(r)), 7);
        out[7] = number(child(child(r)), 8);
        out[8] = number(child(child(r)), 9);
    }
}

void store_hoisted(const uint8_t *data, const int64_t *offsets, int64_t count, uint64_t *out) {
    for (int64_t row = 0; row < count; row++, out += 9) {
        const uint8_t *leaf = child(child(root(data, offsets, row)));
        out[0] = number(leaf, 1);
        out[1] = number(leaf, 2);
        out[2] = number(leaf, 3);
        out[3] = number(leaf, 4);
        out[4] = number(leaf, 5);
        out[5] = number(leaf, 6);
        out[6] = number(leaf, 7);
        out[7] = number(leaf, 8);
        out[8] = number(leaf, 9);
    }
}
