/* What the upstream and the load client share: a clock, an end, and `name=value` words. */

#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NANOSECONDS 1000000000ULL

static inline uint64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * NANOSECONDS + (uint64_t)at.tv_nsec;
}

__attribute__((noreturn, format(printf, 1, 2))) static inline void die(const char *format, ...) {
    va_list words;
    va_start(words, format);
    vfprintf(stderr, format, words);
    va_end(words);
    fputc('\n', stderr);
    exit(1);
}

static inline void *grown(void *memory, size_t size) {
    void *more = realloc(memory, size);
    if (!more) die("out of memory");
    return more;
}

/* Find `name=` at the start of a word of `text` (words end with a space or the text's end). */
static inline const char *word_of(const char *text, const char *end, const char *name) {
    size_t length = strlen(name);
    for (const char *at = text; at + length < end; at++)
        if ((at == text || at[-1] == ' ') && !memcmp(at, name, length) && at[length] == '=') return at + length + 1;
    return NULL;
}

static inline uint64_t number_in(const char *text, const char *end, const char *name, uint64_t otherwise) {
    const char *at = word_of(text, end, name);
    return at ? strtoull(at, NULL, 10) : otherwise;
}

static inline void set_nonblocking(int fd) {
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0) die("fcntl: %s", strerror(errno));
}

/* Small writes go at once, as in every proxy measured. */
static inline void set_nodelay(int fd) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static inline struct sockaddr_in loopback(unsigned port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* A list of moments or lengths, in nanoseconds. */
struct samples {
    uint64_t *values;
    size_t count, room;
};

static inline void add_sample(struct samples *samples, uint64_t value) {
    if (samples->count == samples->room) {
        samples->room = samples->room ? 2 * samples->room : 4096;
        samples->values = grown(samples->values, samples->room * sizeof *samples->values);
    }
    samples->values[samples->count++] = value;
}

#endif
