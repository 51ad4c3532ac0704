/* Reads HTTP/1.1 answers piece by piece, and the events of a stream inside them. */

#ifndef BENCH_ANSWERS_H
#define BENCH_ANSWERS_H

#include "common.h"
#include <strings.h>

#define HEAD_ROOM 8192
#define LINE_ROOM 4096

enum part { ANSWER_HEAD, BY_LENGTH, CHUNK_LENGTH, CHUNK_DATA, CHUNK_END, TRAILER, COMPLETE };

struct answer {
    enum part part;
    int status, closes;
    uint64_t left, size; /* bytes of this piece still to come; bytes of body so far */
    /* what a stream's events said */
    uint64_t events;        /* with a stamp inside */
    int done;               /* [DONE] was seen */
    struct samples *delays; /* from a stamp to when its event was read, if wanted */
    size_t line_size, head_size;
    char line[LINE_ROOM];
    char head[HEAD_ROOM];
};

static inline void expect_answer(struct answer *answer) {
    answer->part = ANSWER_HEAD;
    answer->status = answer->closes = answer->done = 0;
    answer->left = answer->size = answer->events = 0;
    answer->line_size = answer->head_size = 0;
}

static inline const char *answer_header(struct answer *answer, const char *name) {
    size_t length = strlen(name);
    for (char *line = strchr(answer->head, '\n'); line && *++line; line = strchr(line, '\n'))
        if (!strncasecmp(line, name, length) && line[length] == ':') return line + length + 1 + strspn(line + length + 1, " ");
    return NULL;
}

static inline void read_answer_head(struct answer *answer) {
    if (sscanf(answer->head, "HTTP/1.%*d %d", &answer->status) != 1) die("no HTTP answer: %.100s", answer->head);
    const char *connection = answer_header(answer, "connection"), *length = answer_header(answer, "content-length");
    const char *coding = answer_header(answer, "transfer-encoding");
    answer->closes = connection && !strncasecmp(connection, "close", 5);
    if (answer->status != 200) die("status %d instead of 200: %.400s", answer->status, answer->head);
    if (coding && !strncasecmp(coding, "chunked", 7)) {
        answer->part = CHUNK_LENGTH;
    } else if (length) {
        answer->left = strtoull(length, NULL, 10);
        answer->part = answer->left ? BY_LENGTH : COMPLETE;
    } else {
        die("an answer without a length: %.400s", answer->head);
    }
}

static inline size_t feed_answer_head(struct answer *answer, const char *data, size_t count) {
    size_t used = 0;
    while (used < count && answer->part == ANSWER_HEAD) {
        if (answer->head_size == HEAD_ROOM - 1) die("an answer's head of more than %d bytes", HEAD_ROOM);
        answer->head[answer->head_size++] = data[used++];
        if (answer->head_size >= 4 && !memcmp(answer->head + answer->head_size - 4, "\r\n\r\n", 4)) {
            answer->head[answer->head_size] = 0;
            read_answer_head(answer);
        }
    }
    return used;
}

/* A line of the body, when it is an event of a stream. */
static inline void read_event(struct answer *answer, uint64_t now) {
    static const char stamp[] = "\"t\":\"";
    answer->line[answer->line_size] = 0;
    if (strncmp(answer->line, "data: ", 6)) return;
    if (!strncmp(answer->line + 6, "[DONE]", 6)) answer->done = 1;
    const char *at = strstr(answer->line, stamp);
    if (!at) return;
    answer->events++;
    if (answer->delays) add_sample(answer->delays, now - strtoull(at + sizeof stamp - 1, NULL, 10));
}

static inline void feed_events(struct answer *answer, const char *data, size_t count, uint64_t now) {
    while (count) {
        const char *end = memchr(data, '\n', count);
        size_t piece = end ? (size_t)(end - data) : count;
        if (answer->line_size + piece >= LINE_ROOM) die("a line of more than %d bytes", LINE_ROOM);
        memcpy(answer->line + answer->line_size, data, piece);
        answer->line_size += piece;
        if (end) {
            read_event(answer, now);
            answer->line_size = 0;
            piece++;
        }
        data += piece;
        count -= piece;
    }
}

static inline size_t feed_body(struct answer *answer, const char *data, size_t count, int is_stream, uint64_t now) {
    if (count > answer->left) count = answer->left;
    answer->left -= count;
    answer->size += count;
    if (is_stream) feed_events(answer, data, count, now);
    if (!answer->left) answer->part = answer->part == BY_LENGTH ? COMPLETE : CHUNK_END;
    return count;
}

/* Between chunks: one byte of a length, of the end of a chunk, or of the (empty) trailer. */
static inline void feed_framing(struct answer *answer, char byte) {
    if (answer->part == CHUNK_LENGTH && byte == '\n') {
        answer->part = answer->left ? CHUNK_DATA : TRAILER;
    } else if (answer->part == CHUNK_LENGTH && byte != '\r') {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, byte | 0x20);
        if (!digit) die("byte %d in the length of a chunk", byte);
        answer->left = 16 * answer->left + (uint64_t)(digit - digits);
    } else if (answer->part == CHUNK_END && byte == '\n') {
        answer->part = CHUNK_LENGTH;
    } else if (answer->part == TRAILER && byte == '\n') {
        answer->part = COMPLETE;
    }
}

/* Take in what came at `now`.  An answer that is over must not be fed any more. */
static inline void feed(struct answer *answer, const char *data, size_t count, int is_stream, uint64_t now) {
    while (count) {
        size_t used = 1;
        if (answer->part == COMPLETE) die("%zu bytes after the end of an answer", count);
        if (answer->part == ANSWER_HEAD)
            used = feed_answer_head(answer, data, count);
        else if (answer->part == BY_LENGTH || answer->part == CHUNK_DATA)
            used = feed_body(answer, data, count, is_stream, now);
        else
            feed_framing(answer, *data);
        data += used;
        count -= used;
    }
}

#endif
