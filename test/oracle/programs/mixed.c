/* The C half of a program that is optimised as one at link time, for test/oracle/symbols-main.ts. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct entry {
  char *key;
  uint64_t value;
  struct entry *next;
};

#define BUCKETS 256
static struct entry *buckets[BUCKETS];

static uint64_t hash(const char *text) {
  uint64_t value = 14695981039346656037ull;
  for (; *text; text++) value = (value ^ (unsigned char)*text) * 1099511628211ull;
  return value;
}

static struct entry *find(const char *key) {
  struct entry *entry = buckets[hash(key) % BUCKETS];
  while (entry && strcmp(entry->key, key)) entry = entry->next;
  return entry;
}

uint64_t table_add(const char *key, uint64_t value) {
  struct entry *entry = find(key);
  if (!entry) {
    entry = calloc(1, sizeof *entry);
    entry->key = strdup(key);
    entry->next = buckets[hash(key) % BUCKETS];
    buckets[hash(key) % BUCKETS] = entry;
  }
  return entry->value += value;
}

static int by_value(const void *a, const void *b) {
  const struct entry *left = *(struct entry *const *)a, *right = *(struct entry *const *)b;
  return left->value < right->value ? 1 : left->value > right->value ? -1 : strcmp(left->key, right->key);
}

size_t table_sort(struct entry **out, size_t room) {
  size_t count = 0;
  for (int i = 0; i < BUCKETS; i++)
    for (struct entry *entry = buckets[i]; entry && count < room; entry = entry->next) out[count++] = entry;
  qsort(out, count, sizeof *out, by_value);
  return count;
}

const char *entry_key(const struct entry *entry) { return entry->key; }
uint64_t entry_value(const struct entry *entry) { return entry->value; }
