// Protobuf bytes scanned by hand for the same answers as benchmarks/wire.py: the same checks of bounds, the last
// occurrence of a field counts. data and offsets as yaffjit.rows takes them; -1 or false for broken bytes.
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef const uint8_t* pos;

static inline pos varint(pos p, pos end, uint64_t* value) {
  if (p < end && *p < 128) {
    *value = *p;
    return p + 1;
  }
  uint64_t bits = 0;
  for (int shift = 0; p < end && shift < 70; shift += 7) {
    uint8_t byte = *p++;
    bits |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) {
      *value = bits;
      return p;
    }
  }
  return 0;
}

static inline pos tag_at(pos p, pos end, uint64_t* tag) {
  pos start = p;
  p = varint(p, end, tag);
  return p && *tag >= 8 && *tag < 1ull << 32 && p - start <= 5 ? p : 0;
}

static inline pos size_at(pos p, pos end, uint64_t* size) {
  p = varint(p, end, size);
  return p && (uint64_t)(end - p) >= *size ? p : 0;
}

static pos group(pos p, pos end, uint64_t number);

static inline pos skip(pos p, pos end, uint64_t tag) {
  uint64_t size;
  switch (tag & 7) {
    case 0:
      return varint(p, end, &size);
    case 1:
      return end - p >= 8 ? p + 8 : 0;
    case 2:
      p = size_at(p, end, &size);
      return p ? p + size : 0;
    case 3:
      return group(p, end, tag >> 3);
    case 5:
      return end - p >= 4 ? p + 4 : 0;
    default:
      return 0;
  }
}

static __attribute__((noinline)) pos group(pos p, pos end, uint64_t number) {
  uint64_t numbers[100], depth = 0;
  numbers[depth++] = number;
  while (p && p < end) {
    uint64_t tag;
    if (!(p = tag_at(p, end, &tag))) return 0;
    if ((tag & 7) == 3) {
      if (depth == 100) return 0;
      numbers[depth++] = tag >> 3;
    } else if ((tag & 7) == 4) {
      if (numbers[--depth] != tag >> 3) return 0;
      if (!depth) return p;
    } else {
      p = skip(p, end, tag);
    }
  }
  return 0;
}

static inline bool fixed64(pos* p, pos end, void* value) {
  if (end - *p < 8) return false;
  memcpy(value, *p, 8);
  *p += 8;
  return true;
}

typedef struct {
  uint64_t id, clicks;
  double price, ctr;
  int64_t state;
} features;

static inline bool read_banner(pos p, pos end, features* f) {
  uint64_t tag, value;
  memset(f, 0, sizeof *f);
  while (p < end) {
    if (!(p = tag_at(p, end, &tag))) return false;
    switch (tag) {
      case 1 << 3:
        if (!(p = varint(p, end, &f->id))) return false;
        break;
      case 3 << 3 | 1:
        if (!fixed64(&p, end, &f->price)) return false;
        break;
      case 4 << 3:
        if (!(p = varint(p, end, &value))) return false;
        f->state = (int32_t)value;
        break;
      case 7 << 3 | 2: {
        if (!(p = size_at(p, end, &value))) return false;
        pos inner = p + value;
        while (p < inner) {
          if (!(p = tag_at(p, inner, &tag))) return false;
          if (tag == 2 << 3) {
            if (!(p = varint(p, inner, &f->clicks))) return false;
          } else if (tag == (3 << 3 | 1)) {
            if (!fixed64(&p, inner, &f->ctr)) return false;
          } else if (!(p = skip(p, inner, tag))) {
            return false;
          }
        }
        break;
      }
      default:
        if (!(p = skip(p, end, tag))) return false;
    }
  }
  return true;
}

// The five features of all rows.
int64_t banners(const uint8_t* data, const int64_t* offsets, int64_t rows, uint64_t* ids, double* prices,
                int64_t* states, uint64_t* clicks, double* ctrs) {
  for (int64_t row = 0; row < rows; row++) {
    features f;
    if (!read_banner(data + offsets[row], data + offsets[row + 1], &f)) return -1;
    ids[row] = f.id;
    prices[row] = f.price;
    states[row] = f.state;
    clicks[row] = f.clicks;
    ctrs[row] = f.ctr;
  }
  return rows;
}

// Of a campaign: its id, and how many operations and tags it has.
int64_t shallow(const uint8_t* data, const int64_t* offsets, int64_t rows) {
  int64_t sum = 0;
  for (int64_t row = 0; row < rows; row++) {
    pos p = data + offsets[row], end = data + offsets[row + 1];
    uint64_t tag, id = 0, operations = 0, tags = 0;
    while (p < end) {
      if (!(p = tag_at(p, end, &tag))) return -1;
      if (tag == 1 << 3) {
        if (!(p = varint(p, end, &id))) return -1;
      } else {
        operations += tag == (3 << 3 | 2);
        tags += tag == (4 << 3 | 2);
        if (!(p = skip(p, end, tag))) return -1;
      }
    }
    sum += (int64_t)(id + operations + tags);
  }
  return sum;
}

// Operations, and hackers of each.
int64_t counts(const uint8_t* data, const int64_t* offsets, int64_t rows) {
  int64_t sum = 0;
  for (int64_t row = 0; row < rows; row++) {
    pos p = data + offsets[row], end = data + offsets[row + 1];
    uint64_t tag, size;
    while (p < end) {
      if (!(p = tag_at(p, end, &tag))) return -1;
      if (tag != (3 << 3 | 2)) {
        if (!(p = skip(p, end, tag))) return -1;
        continue;
      }
      sum++;
      if (!(p = size_at(p, end, &size))) return -1;
      pos operation_end = p + size;
      while (p < operation_end) {
        if (!(p = tag_at(p, operation_end, &tag))) return -1;
        sum += tag == (4 << 3 | 2);
        if (!(p = skip(p, operation_end, tag))) return -1;
      }
    }
  }
  return sum;
}

// The bytes of every hacker's handle, in one walk.
int64_t deep(const uint8_t* data, const int64_t* offsets, int64_t rows) {
  int64_t sum = 0;
  for (int64_t row = 0; row < rows; row++) {
    pos p = data + offsets[row], end = data + offsets[row + 1];
    uint64_t tag, size;
    while (p < end) {
      if (!(p = tag_at(p, end, &tag))) return -1;
      if (tag != (3 << 3 | 2)) {
        if (!(p = skip(p, end, tag))) return -1;
        continue;
      }
      if (!(p = size_at(p, end, &size))) return -1;
      pos operation_end = p + size;
      while (p < operation_end) {
        if (!(p = tag_at(p, operation_end, &tag))) return -1;
        if (tag != (4 << 3 | 2)) {
          if (!(p = skip(p, operation_end, tag))) return -1;
          continue;
        }
        if (!(p = size_at(p, operation_end, &size))) return -1;
        pos hacker_end = p + size;
        uint64_t handle_size = 0;
        while (p < hacker_end) {
          if (!(p = tag_at(p, hacker_end, &tag))) return -1;
          if (tag == (1 << 3 | 2)) {
            if (!(p = size_at(p, hacker_end, &handle_size))) return -1;
            p += handle_size;
          } else if (!(p = skip(p, hacker_end, tag))) {
            return -1;
          }
        }
        sum += (int64_t)handle_size;
      }
    }
  }
  return sum;
}
