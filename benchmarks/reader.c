/* The reading algorithm of yaffjit's jitted getters in plain C: what a compiled program would do with the same bytes.

   Source: docs/format.md. Requires: well-formed buffers of the message types of tree.proto, and from `text` on of
   items.proto; keys of maps ascend.
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

/* items.proto: each field but the last has a slot of four bytes. */

enum { KIND = 1, TITLE = 2, BY_ID = 3, BY_NAME = 4, NAMES = 5, WANTED_NAME = 7, WANTED_ID = 8 };
enum { FEW = 32, ID_PAIR = 16, NAME_PAIR = 12 };

typedef struct { const uint8_t *bytes; uint32_t size; } text;
typedef int64_t (*hash_function)(const void *bytes, ptrdiff_t size);

static inline const uint8_t *object(const uint8_t *message, uint32_t id) {
    const uint8_t *slot = field(message, id, (id - 1) * 4);
    if (slot == NULL) return NULL;
    uint32_t offset = load32(slot);
    return offset ? message + offset : NULL;
}

static inline text text_at(const uint8_t *p) {
    text none = { NULL, 0 };
    if (p == NULL) return none;
    text found = { p + 4, load32(p) };
    return found;
}

static inline int same(text a, text b) { return a.size == b.size && memcmp(a.bytes, b.bytes, a.size) == 0; }

static inline int less(text a, text b) {
    int order = memcmp(a.bytes, b.bytes, a.size < b.size ? a.size : b.size);
    return order ? order < 0 : a.size < b.size;
}

static inline int64_t id_at(const uint8_t *pair) { return (int64_t)load64(pair); }
static inline text name_at(const uint8_t *pair) { return text_at(pair + load32(pair)); }
static inline double number_at(const uint8_t *p) { double v; memcpy(&v, p, sizeof v); return v; }

/* Up to FEW pairs are compared one by one, more by halving, as yaffjit does. */
static double by_id(const uint8_t *map, int64_t key) {
    uint32_t count = map ? load32(map) : 0;
    const uint8_t *low = map + 4;
    if (count <= FEW) {
        for (uint32_t i = 0; i < count; i++, low += ID_PAIR)
            if (id_at(low) == key) return number_at(low + 8);
        return 0.0;
    }
    for (uint32_t left = count; left > 1;) {
        uint32_t half = left / 2;
        low = key < id_at(low + half * ID_PAIR) ? low : low + half * ID_PAIR;
        left -= half;
    }
    return id_at(low) == key ? number_at(low + 8) : 0.0;
}

static double by_name(const uint8_t *map, text key) {
    uint32_t count = map ? load32(map) : 0;
    const uint8_t *low = map + 4;
    if (count <= FEW) {
        for (uint32_t i = 0; i < count; i++, low += NAME_PAIR)
            if (same(name_at(low), key)) return number_at(low + 4);
        return 0.0;
    }
    for (uint32_t left = count; left > 1;) {
        uint32_t half = left / 2;
        if (!less(key, name_at(low + half * NAME_PAIR))) {
            low += half * NAME_PAIR;
            __asm__ volatile("");  /* a branch: a select would wait for each text before the next one is read */
        }
        left -= half;
    }
    return same(name_at(low), key) ? number_at(low + 4) : 0.0;
}

/* Many look-ups in one map. */
double ids_in_one(const uint8_t *data, const int64_t *offsets, const int64_t *keys, int64_t count) {
    const uint8_t *item = root(data, offsets, 0);
    double total = 0.0;
    for (int64_t i = 0; i < count; i++) total += by_id(object(item, BY_ID), keys[i]);
    return total;
}

double names_in_one(const uint8_t *data, const int64_t *offsets) {
    const uint8_t *item = root(data, offsets, 0), *names = object(item, NAMES);
    uint32_t count = names ? load32(names) : 0;
    double total = 0.0;
    for (uint32_t i = 0; i < count; i++)
        total += by_name(object(item, BY_NAME), text_at(names + 4 + load32(names + 4 + 4 * i)));
    return total;
}

/* One look-up in each of many maps. */
double id_in_each(const uint8_t *data, const int64_t *offsets, int64_t count) {
    double total = 0.0;
    for (int64_t row = 0; row < count; row++) {
        const uint8_t *item = root(data, offsets, row), *wanted = field(item, WANTED_ID, (WANTED_ID - 1) * 4);
        total += by_id(object(item, BY_ID), wanted ? id_at(wanted) : 0);
    }
    return total;
}

double name_in_each(const uint8_t *data, const int64_t *offsets, int64_t count) {
    double total = 0.0;
    for (int64_t row = 0; row < count; row++) {
        const uint8_t *item = root(data, offsets, row);
        total += by_name(object(item, BY_NAME), text_at(object(item, WANTED_NAME)));
    }
    return total;
}

int64_t count_violins(const uint8_t *data, const int64_t *offsets, int64_t count) {
    text violin = { (const uint8_t *)"violin", 6 };
    int64_t found = 0;
    for (int64_t row = 0; row < count; row++) found += same(text_at(object(root(data, offsets, row), KIND)), violin);
    return found;
}

int64_t count_violin_names(const uint8_t *data, const int64_t *offsets) {
    const uint8_t *names = object(root(data, offsets, 0), NAMES);
    uint32_t count = names ? load32(names) : 0;
    text violin = { (const uint8_t *)"violin", 6 };
    int64_t found = 0;
    for (uint32_t i = 0; i < count; i++) found += same(text_at(names + 4 + load32(names + 4 + 4 * i)), violin);
    return found;
}

/* Python's hash of text that is ASCII; `hash` is CPython's own function for bytes. */
int64_t hash_titles(const uint8_t *data, const int64_t *offsets, int64_t count, hash_function hash) {
    int64_t mixed = 0;
    for (int64_t row = 0; row < count; row++) {
        text title = text_at(object(root(data, offsets, row), TITLE));
        uint8_t high = 0;
        for (uint32_t i = 0; i < title.size; i++) high |= title.bytes[i];
        if (high & 0x80) return -1; /* would have to be decoded */
        mixed ^= hash(title.bytes, title.size);
    }
    return mixed;
}

/* Rows in any order, of tree.proto. */
uint64_t sum_of_rows(const uint8_t *data, const int64_t *offsets, const int64_t *rows, int64_t count) {
    uint64_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *r = root(data, offsets, rows[i]);
        total += number(child(child(r)), 1) + number(child(child(r)), 2) + number(child(child(r)), 3)
               + number(child(child(r)), 4) + number(child(child(r)), 5) + number(child(child(r)), 6)
               + number(child(child(r)), 7) + number(child(child(r)), 8) + number(child(child(r)), 9);
    }
    return total;
}

/* One field of each row: mostly finding the row. */
uint64_t sum_first(const uint8_t *data, const int64_t *offsets, int64_t count) {
    uint64_t total = 0;
    for (int64_t row = 0; row < count; row++) total += number(root(data, offsets, row), 1);
    return total;
}

uint64_t sum_first_of_rows(const uint8_t *data, const int64_t *offsets, const int64_t *rows, int64_t count) {
    uint64_t total = 0;
    for (int64_t i = 0; i < count; i++) total += number(root(data, offsets, rows[i]), 1);
    return total;
}

/* yaffjit/demo_ads.proto: five fields of banners in any order. */

enum { BANNER_ID = 1, PRICE = 3, STATE = 4, STATS = 7, CLICKS = 2, RATE = 3 };

double sum_of_banners(const uint8_t *data, const int64_t *offsets, const int64_t *rows, int64_t count) {
    double total = 0.0;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *banner = root(data, offsets, rows[i]);
        const uint8_t *id = field(banner, BANNER_ID, 0), *price = field(banner, PRICE, 16);
        const uint8_t *state = field(banner, STATE, 24), *slot = field(banner, STATS, 36);
        uint32_t offset = slot ? load32(slot) : 0;
        const uint8_t *stats = offset ? banner + offset : NULL;
        const uint8_t *clicks = field(stats, CLICKS, 8), *rate = field(stats, RATE, 16);
        uint64_t whole = (id ? load64(id) : 0) + (clicks ? load64(clicks) : 0) + (state ? load32(state) : 0);
        total += (price ? number_at(price) : 0.0) + (rate ? number_at(rate) : 0.0) + (double)whole;
    }
    return total;
}
