/* Clients for measuring proxies, on 127.0.0.1.  Results go to stdout as lines of JSON; the first thing that
 * is not as it should be ends the run with a line on stderr and exit code 1.
 *
 *   load json port=P [clients=1] [requests=1000] [body=300] [answer=300]
 *        each client asks again as soon as it is answered, over one connection; latencies are from the first
 *        byte written to the last one read
 *   load sse port=P [streams=1] [count=100] [rate=100] [size=200]
 *        `streams` answers of `count` chunks each, `rate` a second; prints {"started": true} when each has
 *        its first chunk; delays are from the stamp in a chunk to when it was read
 *   load abort port=P [requests=20] [rate=20] [size=200] [quiet_us=5000] [pause_us=20000]
 *        one stream after the other, left `quiet_us` after its third chunk; prints the moments
 *
 * And for all: [path=/v1/chat/completions] [model=bench] [limit=120] seconds until it gives up,
 * [delay_us=0] before each answer.
 */

#define _GNU_SOURCE
#include "answers.h"
#include <sys/epoll.h>

struct client {
    int fd;
    uint64_t asked; /* when */
    size_t sent;    /* bytes of the request */
    int wants_writable;
    struct answer answer;
};

static const char *options, *options_end;
static unsigned port;
static char *request; /* head and body, the same for all */
static size_t request_size;
static int is_stream, poller;
static uint64_t reconnects;
static char input[256 * 1024];

static uint64_t option(const char *name, uint64_t otherwise) { return number_in(options, options_end, name, otherwise); }

static void copy_option(char *into, size_t room, const char *name, const char *otherwise) {
    const char *at = word_of(options, options_end, name);
    size_t length = at ? strcspn(at, " ") : strlen(otherwise);
    if (length >= room) die("%s is too long", name);
    memcpy(into, at ? at : otherwise, length);
    into[length] = 0;
}

/* --- requests -------------------------------------------------------------------------------------------- */

/* A chat of `size` bytes, with text in it that does not compress to nothing. */
static void write_body(char *at, size_t size, const char *model) {
    char before[400];
    static const char after[] = "\"}]}";
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint64_t seed = 1;
    int length = snprintf(before, sizeof before,
                          "{\"model\":\"%s\",\"stream\":%s,\"messages\":[{\"role\":\"user\",\"content\":\"", model,
                          is_stream ? "true" : "false");
    if (size < (size_t)length + sizeof after - 1) die("a body of %zu bytes is too small", size);
    memset(at, 'x', size);
    memcpy(at, before, (size_t)length);
    for (size_t i = (size_t)length; i < size - (sizeof after - 1); i++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        at[i] = letters[seed >> 58];
    }
    memcpy(at + size - (sizeof after - 1), after, sizeof after - 1);
}

static void make_request(const char *wishes) {
    char model[200], path[200], head[1200];
    size_t body = option("body", 300);
    copy_option(model, sizeof model, "model", "bench");
    copy_option(path, sizeof path, "path", "/v1/chat/completions");
    int length = snprintf(head, sizeof head,
                          "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: bench\r\nAccept: */*\r\n"
                          "X-Bench: %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                          path, port, wishes, body);
    request_size = (size_t)length + body;
    request = grown(request, request_size);
    memcpy(request, head, (size_t)length);
    write_body(request + length, body, model);
}

static int connected(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = loopback(port);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) die("connect to %u: %s", port, strerror(errno));
    set_nodelay(fd);
    return fd;
}

/* --- many clients at once -------------------------------------------------------------------------------- */

static void watch(struct client *one, int writable, int operation) {
    struct epoll_event event = {.events = EPOLLIN | (writable ? EPOLLOUT : 0), .data.ptr = one};
    if (operation == EPOLL_CTL_MOD && one->wants_writable == writable) return;
    if (epoll_ctl(poller, operation, one->fd, &event) < 0) die("epoll_ctl: %s", strerror(errno));
    one->wants_writable = writable;
}

static void open_connection(struct client *one) {
    one->fd = connected();
    set_nonblocking(one->fd);
    watch(one, 0, EPOLL_CTL_ADD);
}

static void push(struct client *one) {
    while (one->sent < request_size) {
        ssize_t count = send(one->fd, request + one->sent, request_size - one->sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EAGAIN) break;
        if (count < 0) die("send: %s", strerror(errno));
        one->sent += (size_t)count;
    }
    watch(one, one->sent < request_size, EPOLL_CTL_MOD);
}

static void ask(struct client *one) {
    if (one->answer.closes) {
        close(one->fd);
        open_connection(one);
        reconnects++;
    }
    expect_answer(&one->answer);
    one->sent = 0;
    one->asked = now_ns();
    push(one);
}

static void receive(struct client *one) {
    for (size_t count = sizeof input; count == sizeof input && one->answer.part != COMPLETE;) {
        ssize_t got = recv(one->fd, input, sizeof input, 0);
        if (got < 0 && errno == EAGAIN) return;
        if (got < 0) die("recv: %s", strerror(errno));
        if (got == 0) die("a connection was closed before the end of an answer (%llu bytes of body had come)",
                          (unsigned long long)one->answer.size);
        count = (size_t)got;
        feed(&one->answer, input, count, is_stream, now_ns());
    }
}

static struct client *make_clients(size_t count) {
    struct client *clients = grown(NULL, count * sizeof *clients);
    memset(clients, 0, count * sizeof *clients);
    poller = epoll_create1(0);
    for (size_t i = 0; i < count; i++) open_connection(&clients[i]);
    return clients;
}

/* Wait once; feed what came; call `moved` for each client that got something. */
static void turn(void (*moved)(struct client *)) {
    struct epoll_event events[256];
    int ready = epoll_wait(poller, events, 256, -1);
    for (int i = 0; i < ready; i++) {
        struct client *one = events[i].data.ptr;
        if (events[i].events & EPOLLOUT) push(one);
        if (events[i].events & ~(uint32_t)EPOLLOUT) {
            receive(one);
            moved(one);
        }
    }
}

/* --- results --------------------------------------------------------------------------------------------- */

static int by_size(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static uint64_t quantile(const struct samples *sorted, double part) {
    size_t place = (size_t)(part * (double)sorted->count);
    return sorted->values[place < sorted->count ? place : sorted->count - 1];
}

/* The values must be there; they are sorted in place. */
static void print_result(struct samples *samples, uint64_t started) {
    double sum = 0;
    if (!samples->count) die("nothing was measured");
    qsort(samples->values, samples->count, sizeof *samples->values, by_size);
    for (size_t i = 0; i < samples->count; i++) sum += (double)samples->values[i];
    printf("{\"count\": %zu, \"seconds\": %.9f, \"reconnects\": %llu, \"low_ns\": %llu, \"p50_ns\": %llu, "
           "\"p90_ns\": %llu, \"p99_ns\": %llu, \"high_ns\": %llu, \"mean_ns\": %.0f}\n",
           samples->count, (double)(now_ns() - started) / 1e9, (unsigned long long)reconnects,
           (unsigned long long)samples->values[0], (unsigned long long)quantile(samples, 0.5),
           (unsigned long long)quantile(samples, 0.9), (unsigned long long)quantile(samples, 0.99),
           (unsigned long long)samples->values[samples->count - 1], sum / (double)samples->count);
}

/* --- json ------------------------------------------------------------------------------------------------ */

static struct samples latencies, delays;
static uint64_t to_ask, answer_size, streams_begun, streams_ended, count_wanted;

static void json_moved(struct client *one) {
    if (one->answer.part != COMPLETE) return;
    add_sample(&latencies, now_ns() - one->asked);
    if (one->answer.size != answer_size)
        die("an answer of %llu bytes instead of %llu", (unsigned long long)one->answer.size,
            (unsigned long long)answer_size);
    if (to_ask) {
        to_ask--;
        ask(one);
    }
}

static void run_json(void) {
    char wishes[200];
    uint64_t clients = option("clients", 1), requests = option("requests", 1000);
    if (clients > requests) clients = requests;
    answer_size = option("answer", 300);
    snprintf(wishes, sizeof wishes, "mode=json size=%llu delay_us=%llu", (unsigned long long)answer_size,
             (unsigned long long)option("delay_us", 0));
    make_request(wishes);
    struct client *all = make_clients(clients);
    uint64_t started = now_ns();
    to_ask = requests - clients;
    for (size_t i = 0; i < clients; i++) ask(&all[i]);
    while (latencies.count < requests) turn(json_moved);
    print_result(&latencies, started);
}

/* --- sse ------------------------------------------------------------------------------------------------- */

static void sse_moved(struct client *one) {
    if (one->answer.events && one->sent == request_size) { /* its first */
        one->sent++;
        streams_begun++;
    }
    if (one->answer.part != COMPLETE) return;
    if (one->answer.events != count_wanted || !one->answer.done)
        die("a stream of %llu chunks instead of %llu%s", (unsigned long long)one->answer.events,
            (unsigned long long)count_wanted, one->answer.done ? "" : ", without its end");
    streams_ended++;
}

static void make_stream_request(uint64_t id, uint64_t count, uint64_t rate) {
    char wishes[200];
    snprintf(wishes, sizeof wishes, "mode=sse size=%llu rate=%llu count=%llu id=%llu delay_us=%llu",
             (unsigned long long)option("size", 200), (unsigned long long)rate, (unsigned long long)count,
             (unsigned long long)id, (unsigned long long)option("delay_us", 0));
    make_request(wishes);
}

static void run_sse(void) {
    uint64_t streams = option("streams", 1);
    is_stream = 1;
    count_wanted = option("count", 100);
    make_stream_request(0, count_wanted, option("rate", 100));
    struct client *all = make_clients(streams);
    uint64_t started = now_ns();
    for (size_t i = 0; i < streams; i++) {
        all[i].answer.delays = &delays;
        ask(&all[i]);
    }
    while (streams_begun < streams) turn(sse_moved);
    printf("{\"started\": true}\n");
    fflush(stdout);
    while (streams_ended < streams) turn(sse_moved);
    print_result(&delays, started);
}

/* --- abort ----------------------------------------------------------------------------------------------- */

static void read_until(int fd, struct answer *answer, uint64_t events) {
    while (answer->events < events) {
        ssize_t got = recv(fd, input, sizeof input, 0);
        if (got <= 0) die("recv: %s", got ? strerror(errno) : "closed before its end");
        feed(answer, input, (size_t)got, 1, now_ns());
    }
}

static uint64_t leave_one(struct answer *answer, uint64_t id) {
    make_stream_request(id, 1000000, option("rate", 20));
    int fd = connected();
    expect_answer(answer);
    if (send(fd, request, request_size, MSG_NOSIGNAL) != (ssize_t)request_size) die("send: %s", strerror(errno));
    read_until(fd, answer, 3);
    usleep((useconds_t)option("quiet_us", 5000));
    uint64_t left = now_ns();
    close(fd);
    return left;
}

static void run_abort(void) {
    struct answer *answer = grown(NULL, sizeof *answer);
    uint64_t requests = option("requests", 20);
    memset(answer, 0, sizeof *answer);
    is_stream = 1;
    printf("{\"aborts\": [");
    for (uint64_t id = 0; id < requests; id++) {
        uint64_t left = leave_one(answer, id);
        printf("%s[%llu, %llu]", id ? ", " : "", (unsigned long long)id, (unsigned long long)left);
        usleep((useconds_t)option("pause_us", 20000));
    }
    printf("]}\n");
}

/* --------------------------------------------------------------------------------------------------------- */

static char *joined(int count, char **words) {
    size_t size = 1;
    for (int i = 0; i < count; i++) size += strlen(words[i]) + 1;
    char *text = grown(NULL, size), *at = text;
    for (int i = 0; i < count; i++) at += sprintf(at, "%s ", words[i]);
    *at = 0;
    return text;
}

int main(int count, char **words) {
    if (count < 3) die("usage: load json|sse|abort port=P [NAME=VALUE]...");
    options = joined(count - 2, words + 2);
    options_end = options + strlen(options);
    port = (unsigned)option("port", 0);
    alarm((unsigned)option("limit", 120));
    if (!strcmp(words[1], "json"))
        run_json();
    else if (!strcmp(words[1], "sse"))
        run_sse();
    else if (!strcmp(words[1], "abort"))
        run_abort();
    else
        die("unknown: %s", words[1]);
    return 0;
}
