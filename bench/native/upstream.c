/* A model server for measuring proxies: answers as it is told to, and writes down what it sees.
 *
 *   upstream [PORT]        prints {"port": N}, then serves on 127.0.0.1 until it is killed
 *
 * A POST is answered as its `X-Bench` header says (`name=value` words; all optional):
 *
 *   mode=json size=300 delay_us=0               one JSON body of `size` bytes, with `usage`
 *   mode=sse size=200 rate=100 count=100 delay_us=0 id=0
 *                                               `count` chunks of `size` bytes, `rate` a second (0: at once);
 *                                               each holds "t":"<CLOCK_MONOTONIC, ns, 20 digits>"
 *
 * Chunks of different streams are out of step.  GET /records answers with what was seen since the last
 * one, and forgets it:
 *
 *   gaps        ns from the end of an answer to the next request's head, with none in between
 *   overlaps    requests that came while another was being answered
 *   aborts      [id, moment in ns] of each answer whose connection went away before its end
 *   jobs, chunks, body_bytes, connections       counts; `connections` of those accepted
 */

#define _GNU_SOURCE
#include "common.h"
#include <stddef.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>

#define ROOM (256 * 1024) /* of a connection's input; a head must fit */
#define TAIL 1024         /* what may come after the last chunk of a stream */

enum stage { HEAD, BODY, WAITING, WRITING };
enum mode { JSON, SSE };

struct connection {
    int fd;
    enum stage stage;
    size_t have; /* bytes of `in` */
    uint64_t body_left;
    int is_job, wants_records;
    /* the answer */
    enum mode mode;
    uint64_t size, delay, interval, left, id;
    int head_sent;
    uint64_t due;
    size_t place; /* in the heap of timers, 0 = not there */
    char *out;
    size_t out_size, out_done, out_room;
    int wants_writable;
    char in[ROOM];
};

static int poller;
static struct connection **timers; /* a heap from 1 on, the earliest first */
static size_t timer_count, timer_room;
static struct samples gaps, aborts;
static uint64_t last_end, jobs, chunks, body_bytes, connections, overlaps, active;
static uint64_t phase = 12345;

/* --- timers ---------------------------------------------------------------------------------------------- */

static void put(size_t place, struct connection *one) {
    timers[place] = one;
    one->place = place;
}

static void sift_up(size_t place) {
    struct connection *one = timers[place];
    for (; place > 1 && timers[place / 2]->due > one->due; place /= 2) put(place, timers[place / 2]);
    put(place, one);
}

static void sift_down(size_t place) {
    struct connection *one = timers[place];
    for (size_t child; (child = 2 * place) <= timer_count; place = child) {
        if (child < timer_count && timers[child + 1]->due < timers[child]->due) child++;
        if (timers[child]->due >= one->due) break;
        put(place, timers[child]);
    }
    put(place, one);
}

static void arm(struct connection *one, uint64_t due) {
    one->due = due;
    if (++timer_count >= timer_room) {
        timer_room = timer_room ? 2 * timer_room : 256;
        timers = grown(timers, timer_room * sizeof *timers);
    }
    put(timer_count, one);
    sift_up(timer_count);
}

static void disarm(struct connection *one) {
    size_t place = one->place;
    if (!place) return;
    struct connection *last = timers[timer_count--];
    one->place = 0;
    if (last == one) return;
    put(place, last);
    sift_down(place);
    sift_up(last->place);
}

/* --- writing --------------------------------------------------------------------------------------------- */

static void answered(struct connection *one);
static void take_input(struct connection *one);

static void watch(struct connection *one, int writable) {
    if (one->wants_writable == writable) return;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | (writable ? EPOLLOUT : 0), .data.ptr = one};
    if (epoll_ctl(poller, EPOLL_CTL_MOD, one->fd, &event) < 0) die("epoll_ctl: %s", strerror(errno));
    one->wants_writable = writable;
}

static void drop(struct connection *one) {
    int in_job = one->is_job && one->stage != HEAD;
    if (in_job) active--;
    if (in_job && one->stage != BODY) {
        add_sample(&aborts, one->id);
        add_sample(&aborts, now_ns());
    }
    disarm(one);
    close(one->fd);
    free(one->out);
    free(one);
}

static char *space(struct connection *one, size_t size) {
    if (one->out_size + size > one->out_room) {
        one->out_room = 2 * (one->out_size + size);
        one->out = grown(one->out, one->out_room);
    }
    return one->out + one->out_size;
}

__attribute__((format(printf, 2, 3))) static void say(struct connection *one, const char *format, ...) {
    va_list words;
    char *at = space(one, TAIL);
    va_start(words, format);
    one->out_size += (size_t)vsnprintf(at, TAIL, format, words);
    va_end(words);
}

static void fill(struct connection *one, uint64_t size) {
    memset(space(one, size), 'x', size);
    one->out_size += size;
}

/* Write what there is.  Returns -1 when the connection is gone (and freed), 0 when the kernel has no room. */
static int flush(struct connection *one) {
    while (one->out_done < one->out_size) {
        ssize_t count = send(one->fd, one->out + one->out_done, one->out_size - one->out_done, MSG_NOSIGNAL);
        if (count < 0 && errno == EAGAIN) {
            watch(one, 1);
            return 0;
        }
        if (count < 0) {
            drop(one);
            return -1;
        }
        one->out_done += (size_t)count;
    }
    one->out_done = one->out_size = 0;
    watch(one, 0);
    return 1;
}

/* --- answers --------------------------------------------------------------------------------------------- */

static const char JSON_BEFORE[] = "{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion\",\"created\":1700000000,"
                                  "\"model\":\"bench\",\"choices\":[{\"index\":0,\"finish_reason\":\"stop\","
                                  "\"message\":{\"role\":\"assistant\",\"content\":\"";
static const char JSON_AFTER[] =
    "\"}}],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7,\"total_tokens\":18}}";
static const char CHUNK_BEFORE[] = "data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\","
                                   "\"model\":\"bench\",\"t\":\"";
static const char CHUNK_BETWEEN[] = "\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"";
static const char CHUNK_AFTER[] = "\"}}]}\n\n";
static const char LAST_EVENTS[] =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7,\"total_tokens\":18}}\n\n"
    "data: [DONE]\n\n";

static uint64_t padding(uint64_t size, size_t fixed) {
    if (size < fixed) die("size=%llu is less than the %zu bytes that are always there", (unsigned long long)size, fixed);
    return size - fixed;
}

static void say_json(struct connection *one) {
    uint64_t pad = padding(one->size, sizeof JSON_BEFORE + sizeof JSON_AFTER - 2);
    say(one, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %llu\r\n\r\n%s",
        (unsigned long long)one->size, JSON_BEFORE);
    fill(one, pad);
    say(one, "%s", JSON_AFTER);
}

static void say_chunk(struct connection *one) {
    size_t fixed = sizeof CHUNK_BEFORE + sizeof CHUNK_BETWEEN + sizeof CHUNK_AFTER - 3 + 20;
    uint64_t pad = padding(one->size, fixed);
    say(one, "%llx\r\n%s%020llu%s", (unsigned long long)one->size, CHUNK_BEFORE, (unsigned long long)now_ns(),
        CHUNK_BETWEEN);
    fill(one, pad);
    say(one, "%s\r\n", CHUNK_AFTER);
    chunks++;
}

static void say_records(struct connection *one) {
    size_t start = one->out_size;
    say(one, "{\"jobs\":%llu,\"chunks\":%llu,\"body_bytes\":%llu,\"connections\":%llu,\"overlaps\":%llu,\"gaps\":[",
        (unsigned long long)jobs, (unsigned long long)chunks, (unsigned long long)body_bytes,
        (unsigned long long)connections, (unsigned long long)overlaps);
    for (size_t i = 0; i < gaps.count; i++) say(one, "%s%llu", i ? "," : "", (unsigned long long)gaps.values[i]);
    say(one, "],\"aborts\":[");
    for (size_t i = 0; i < aborts.count; i += 2)
        say(one, "%s[%llu,%llu]", i ? "," : "", (unsigned long long)aborts.values[i],
            (unsigned long long)aborts.values[i + 1]);
    say(one, "]}");
    gaps.count = aborts.count = 0;
    jobs = chunks = body_bytes = connections = overlaps = last_end = 0;

    char head[200];
    size_t size = one->out_size - start;
    int length = snprintf(head, sizeof head,
                          "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", size);
    space(one, (size_t)length);
    memmove(one->out + start + length, one->out + start, size);
    memcpy(one->out + start, head, (size_t)length);
    one->out_size += (size_t)length;
}

static void next_chunk(struct connection *one) {
    if (!one->head_sent)
        say(one, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
                 "X-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n\r\n");
    one->head_sent = 1;
    if (one->left) {
        one->left--;
        say_chunk(one);
    } else {
        say(one, "%zx\r\n%s\r\n0\r\n\r\n", sizeof LAST_EVENTS - 1, LAST_EVENTS);
        one->stage = WRITING;
    }
}

/* Everything said so far has gone out; where the kernel had no room, later than it was said. */
static void written(struct connection *one) {
    if (one->stage == WRITING)
        answered(one);
    else
        arm(one, one->due + one->interval);
}

/* It is time for an answer, or for the next piece of one. */
static void act(struct connection *one) {
    if (one->mode == SSE) {
        next_chunk(one);
    } else {
        one->stage = WRITING;
        if (one->wants_records)
            say_records(one);
        else
            say_json(one);
    }
    if (flush(one) > 0) written(one);
}

static void answered(struct connection *one) {
    one->stage = HEAD;
    if (one->is_job) {
        active--;
        last_end = now_ns();
    }
    take_input(one);
}

static void begin_answer(struct connection *one) {
    uint64_t now = now_ns(), due = now + one->delay;
    one->stage = WAITING;
    one->head_sent = 0;
    if (one->mode == SSE && one->interval) {
        phase = phase * 6364136223846793005ULL + 1442695040888963407ULL;
        due += (phase >> 33) % one->interval;
    }
    one->due = due;
    if (one->mode == JSON && !one->delay)
        act(one);
    else
        arm(one, due);
}

/* --- requests -------------------------------------------------------------------------------------------- */

static const char *header(const char *head, const char *end, const char *name, const char **stop) {
    size_t length = strlen(name);
    for (const char *line = head; (line = memchr(line, '\n', (size_t)(end - line))) && ++line + length < end;)
        if (!strncasecmp(line, name, length) && line[length] == ':') {
            const char *value = line + length + 1;
            while (*value == ' ') value++;
            *stop = memchr(line, '\r', (size_t)(end - line));
            return value;
        }
    return NULL;
}

static void read_wishes(struct connection *one, const char *from, const char *to) {
    const char *mode = word_of(from, to, "mode");
    one->mode = mode && !strncmp(mode, "sse", 3) ? SSE : JSON;
    one->size = number_in(from, to, "size", one->mode == SSE ? 200 : 300);
    one->delay = number_in(from, to, "delay_us", 0) * 1000;
    one->left = number_in(from, to, "count", 100);
    one->id = number_in(from, to, "id", 0);
    uint64_t rate = number_in(from, to, "rate", 100);
    one->interval = rate ? NANOSECONDS / rate : 0;
}

static void job_came(void) {
    uint64_t now = now_ns();
    jobs++;
    if (active)
        overlaps++;
    else if (last_end)
        add_sample(&gaps, now - last_end);
    active++;
}

static void read_head(struct connection *one, const char *end) {
    const char *stop = NULL, *value;
    one->is_job = !memcmp(one->in, "POST ", 5);
    one->wants_records = !memcmp(one->in, "GET /records ", 13);
    if (one->is_job) job_came();
    if (header(one->in, end, "transfer-encoding", &stop)) die("a request came in chunks; that is not measured here");
    value = header(one->in, end, "content-length", &stop);
    one->body_left = value ? strtoull(value, NULL, 10) : 0;
    value = header(one->in, end, "x-bench", &stop);
    read_wishes(one, value ? value : "", value ? stop : (const char *)"");
    if (one->is_job) body_bytes += one->body_left;
    one->stage = BODY;
}

static void consume(struct connection *one, size_t count) {
    memmove(one->in, one->in + count, one->have - count);
    one->have -= count;
}

/* Go as far as the input allows.  The connection may be gone afterwards. */
static void take_input(struct connection *one) {
    if (one->stage == HEAD) {
        char *end = memmem(one->in, one->have, "\r\n\r\n", 4);
        if (!end && one->have == ROOM) die("a head of more than %d bytes", ROOM);
        if (!end) return;
        read_head(one, end + 2);
        consume(one, (size_t)(end + 4 - one->in));
    }
    if (one->stage != BODY) return;
    size_t count = one->have < one->body_left ? one->have : one->body_left;
    one->body_left -= count;
    consume(one, count);
    if (!one->body_left) begin_answer(one);
}

static void readable(struct connection *one) {
    if (one->have == ROOM) die("requests came before the last one was answered");
    ssize_t count = read(one->fd, one->in + one->have, ROOM - one->have);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
        drop(one);
        return;
    }
    one->have += (size_t)count;
    take_input(one);
}

/* --- the loop -------------------------------------------------------------------------------------------- */

static int listen_on(unsigned port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in address = loopback(port);
    socklen_t size = sizeof address;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, size) < 0) die("bind to %u: %s", port, strerror(errno));
    if (listen(fd, 4096) < 0) die("listen: %s", strerror(errno));
    getsockname(fd, (struct sockaddr *)&address, &size);
    set_nonblocking(fd);
    printf("{\"port\": %u}\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void take_in(int listener) {
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        struct connection *one = grown(NULL, sizeof *one);
        memset(one, 0, offsetof(struct connection, in)); /* the pages of `in` are touched when used */
        one->fd = fd;
        set_nodelay(fd);
        struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = one};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) < 0) die("epoll_ctl: %s", strerror(errno));
        connections++;
    }
}

static int wait_for(struct epoll_event *events, int most) {
    struct timespec timeout, *patience = NULL;
    if (timer_count) {
        uint64_t now = now_ns(), due = timers[1]->due, left = due > now ? due - now : 0;
        timeout = (struct timespec){.tv_sec = (time_t)(left / NANOSECONDS), .tv_nsec = (long)(left % NANOSECONDS)};
        patience = &timeout;
    }
    return epoll_pwait2(poller, events, most, patience, NULL);
}

static void fire_timers(void) {
    uint64_t now = now_ns();
    while (timer_count && timers[1]->due <= now) {
        struct connection *one = timers[1];
        disarm(one);
        act(one);
    }
}

int main(int count, char **words) {
    struct epoll_event events[256];
    prctl(PR_SET_TIMERSLACK, 1UL); /* chunks are due on the microsecond */
    poller = epoll_create1(0);
    int listener = listen_on(count > 1 ? (unsigned)atoi(words[1]) : 0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int ready = wait_for(events, 256);
        for (int i = 0; i < ready; i++) {
            struct connection *one = events[i].data.ptr;
            if (!one)
                take_in(listener);
            else if (events[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
                readable(one);
            else if (flush(one) > 0)
                written(one);
        }
        fire_timers();
    }
}
