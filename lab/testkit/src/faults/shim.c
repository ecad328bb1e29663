/*
 * Makes calls of a process fail as a sick machine's would: loaded with LD_PRELOAD, told what to do by a control page.
 * `../faults.rs` compiles it, writes the page and says what the rules mean. It changes nothing that no rule names, and
 * without rules a call costs one load.
 *
 * The control page is a file of 4096 bytes, mapped shared, named by BINLOGZ_FAULT_PAGE:
 *
 *      0  u64       generation; 0: the page is being written
 *      8  16 × u64  how many calls each rule has failed, counted here
 *    136  16 × u64  how many calls each rule has matched, counted here
 *    264  text      up to its NUL: "seed N" and "clock SECONDS", then a rule a line:
 *                   CALL ERRNO AFTER COUNT CHANCE PATTERN
 *
 * Of the calls that a rule matches it lets AFTER pass, then fails at most COUNT (0: any number), each with a chance of
 * CHANCE in a million. Which of them is decided by the seed, the rule and the call's number alone. ERRNO 0 is a short
 * write of half the bytes; a negative one is a delay of so many milliseconds, after which the call succeeds. The clock that tells
 * the time of day is ahead by SECONDS; the monotonic one is not.
 *
 * BINLOGZ_WRITTEN names a folder, in which what is written to files is kept as well: a file for each path, with the bytes in
 * the order of the calls, also where they replace others or the file is deleted. Copies within the kernel are refused there, so that programs
 * write themselves.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    PAGE_SIZE = 4096,
    RULES_MAX = 16,
    FAILED_AT = 8,
    MATCHED_AT = FAILED_AT + 8 * RULES_MAX,
    TEXT_AT = MATCHED_AT + 8 * RULES_MAX,
    PATH_SIZE_MAX = 1024,
    PASS = -1, /* no rule says anything */
    SHORT = 0,
};

static const char *const NAMES[] = {
    "open", "read", "write", "sync", "truncate", "rename", "unlink", "mkdir", "list", "thread", "accept",
};
enum call { OPEN, READ, WRITE, SYNC, TRUNCATE, RENAME, UNLINK, MKDIR, LIST, THREAD, ACCEPT, CALLS };

struct rule {
    enum call call;
    int error;
    uint64_t after, count, chance;
    char pattern[PATH_SIZE_MAX];
};

static unsigned char *page;
static const char *written; /* the folder of what is written, or NULL */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t generation; /* of the rules below */
static uint64_t seed;
static int64_t clock_ahead; /* in seconds */
static struct rule rules[RULES_MAX];
static int rule_count;
static int wanted[CALLS]; /* by any rule */

__attribute__((constructor)) static void map_page(void) {
    const char *path = getenv("BINLOGZ_FAULT_PAGE");
    written = getenv("BINLOGZ_WRITTEN");
    if (path == NULL)
        return;
    int (*real_open)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    int fd = real_open(path, O_RDWR | O_CLOEXEC);
    void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
        /* A run without the faults that were asked for would prove nothing. */
        fprintf(stderr, "fault shim: can't map %s: %s\n", path, strerror(errno));
        _exit(99);
    }
    close(fd);
    page = mapped;
}

static uint64_t *counter(int at, int rule) { return (uint64_t *)(page + at) + rule; }

/* Reads the rules again. The mutex is held. */
static void read_rules(void) {
    char text[PAGE_SIZE - TEXT_AT + 1] = {0};
    uint64_t before = __atomic_load_n((uint64_t *)page, __ATOMIC_ACQUIRE);
    if (before == 0)
        return;
    memcpy(text, page + TEXT_AT, PAGE_SIZE - TEXT_AT);
    if (__atomic_load_n((uint64_t *)page, __ATOMIC_ACQUIRE) != before)
        return;
    rule_count = 0;
    long long ahead = 0;
    memset(wanted, 0, sizeof wanted);
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        char name[16];
        long long after, count, chance;
        struct rule rule = {0};
        if (sscanf(line, "seed %lu", &seed) == 1 || sscanf(line, "clock %lld", &ahead) == 1)
            continue;
        if (rule_count == RULES_MAX ||
            sscanf(line, "%15s %d %lld %lld %lld %1023[^\n]", name, &rule.error, &after, &count, &chance,
                   rule.pattern) != 6) {
            fprintf(stderr, "fault shim: no rule: %s\n", line);
            _exit(99);
        }
        rule.after = (uint64_t)after;
        rule.count = (uint64_t)count;
        rule.chance = (uint64_t)chance;
        for (rule.call = 0; rule.call < CALLS && strcmp(NAMES[rule.call], name) != 0;)
            rule.call++;
        if (rule.call == CALLS) {
            fprintf(stderr, "fault shim: no call: %s\n", line);
            _exit(99);
        }
        wanted[rule.call] = 1;
        rules[rule_count++] = rule;
    }
    __atomic_store_n(&clock_ahead, ahead, __ATOMIC_RELAXED);
    __atomic_store_n(&generation, before, __ATOMIC_RELEASE);
}

/* SplitMix64's finish. */
static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void follow_page(void) {
    uint64_t now = __atomic_load_n((uint64_t *)page, __ATOMIC_ACQUIRE);
    if (now != 0 && now != __atomic_load_n(&generation, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&mutex);
        read_rules();
        pthread_mutex_unlock(&mutex);
    }
}

static int is_wanted(enum call call) {
    if (page == NULL)
        return 0;
    follow_page();
    return __atomic_load_n(&wanted[call], __ATOMIC_RELAXED);
}

/* What becomes of a call on this path: PASS, SHORT or an errno. It may take a while. */
static int fate(enum call call, const char *path) {
    int delay = 0, error = PASS;
    pthread_mutex_lock(&mutex);
    for (int at = 0; at < rule_count && error == PASS; at++) {
        struct rule *rule = &rules[at];
        if (rule->call != call || fnmatch(rule->pattern, path, 0) != 0)
            continue;
        uint64_t number = (*counter(MATCHED_AT, at))++;
        uint64_t *failed = counter(FAILED_AT, at);
        if (number < rule->after || (rule->count != 0 && *failed >= rule->count))
            continue;
        uint64_t random = mix(seed + (uint64_t)(at + 1) * 0x9e3779b97f4a7c15 + mix(number + 1));
        if (random % 1000000 >= rule->chance)
            continue;
        (*failed)++;
        if (rule->error < 0)
            delay = -rule->error;
        else
            error = rule->error;
    }
    pthread_mutex_unlock(&mutex);
    if (delay > 0) {
        struct timespec time = {delay / 1000, (long)(delay % 1000) * 1000000};
        /* As at a real disk, no signal cuts the wait short. */
        while (nanosleep(&time, &time) != 0 && errno == EINTR) {
        }
    }
    return error;
}

/* What a descriptor is open on. */
static int fate_of_descriptor(enum call call, int fd) {
    if (!is_wanted(call))
        return PASS;
    int saved = errno;
    char link[32], path[PATH_SIZE_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (size < 0)
        return PASS;
    path[size] = 0;
    return fate(call, path);
}

/* A path as it is given: below the working directory or an open one where it is relative. Symbolic links stay. */
static int fate_of_path(enum call call, int dirfd, const char *path) {
    if (!is_wanted(call))
        return PASS;
    int saved = errno;
    char whole[2 * PATH_SIZE_MAX], above[PATH_SIZE_MAX] = "";
    if (path[0] != '/') {
        char link[32] = "/proc/self/cwd";
        if (dirfd != AT_FDCWD)
            snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
        ssize_t size = readlink(link, above, sizeof above - 1);
        above[size < 0 ? 0 : size] = 0;
        while (strncmp(path, "./", 2) == 0)
            path += 2;
    }
    snprintf(whole, sizeof whole, "%s%s%.1000s", above, path[0] == '/' ? "" : "/", path);
    errno = saved;
    return fate(call, whole);
}

static int fate_of_none(enum call call) { return is_wanted(call) ? fate(call, "") : PASS; }

/* The next one of this name, looked up once. */
#define REAL(result, name, ...)                                                                                        \
    static result (*real)(__VA_ARGS__);                                                                                \
    if (real == NULL)                                                                                                  \
        real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define FAIL_OR_GO_ON(fate_, failure)                                                                                  \
    do {                                                                                                               \
        int error_ = (fate_);                                                                                          \
        if (error_ > 0) {                                                                                              \
            errno = error_;                                                                                            \
            return failure;                                                                                            \
        }                                                                                                              \
    } while (0)

#define MODE_OF(flags)                                                                                                 \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                             \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode = va_arg(more, mode_t);                                                                                   \
        va_end(more);                                                                                                  \
    }

#define OPEN_AS(name)                                                                                                  \
    int name(const char *path, int flags, ...) {                                                                       \
        MODE_OF(flags)                                                                                                 \
        REAL(int, name, const char *, int, ...);                                                                       \
        FAIL_OR_GO_ON(fate_of_path(OPEN, AT_FDCWD, path), -1);                                                         \
        return real(path, flags, mode);                                                                                \
    }
OPEN_AS(open)
OPEN_AS(open64)

#define OPENAT_AS(name)                                                                                                \
    int name(int dirfd, const char *path, int flags, ...) {                                                            \
        MODE_OF(flags)                                                                                                 \
        REAL(int, name, int, const char *, int, ...);                                                                  \
        FAIL_OR_GO_ON(fate_of_path(OPEN, dirfd, path), -1);                                                            \
        return real(dirfd, path, flags, mode);                                                                         \
    }
OPENAT_AS(openat)
OPENAT_AS(openat64)

#define CREAT_AS(name)                                                                                                 \
    int name(const char *path, mode_t mode) {                                                                          \
        REAL(int, name, const char *, mode_t);                                                                         \
        FAIL_OR_GO_ON(fate_of_path(OPEN, AT_FDCWD, path), -1);                                                         \
        return real(path, mode);                                                                                       \
    }
CREAT_AS(creat)
CREAT_AS(creat64)

ssize_t read(int fd, void *buffer, size_t size) {
    REAL(ssize_t, read, int, void *, size_t);
    FAIL_OR_GO_ON(fate_of_descriptor(READ, fd), -1);
    return real(fd, buffer, size);
}

#define PREAD_AS(name, offset_t)                                                                                       \
    ssize_t name(int fd, void *buffer, size_t size, offset_t offset) {                                                 \
        REAL(ssize_t, name, int, void *, size_t, offset_t);                                                            \
        FAIL_OR_GO_ON(fate_of_descriptor(READ, fd), -1);                                                               \
        return real(fd, buffer, size, offset);                                                                         \
    }
PREAD_AS(pread, off_t)
PREAD_AS(pread64, off64_t)

static int is_file(int fd) {
    struct stat is;
    return fstat(fd, &is) == 0 && S_ISREG(is.st_mode);
}

/* What was written to a file. A run of which something is missing would prove nothing. */
static void keep(int fd, const void *buffer, ssize_t size) {
    if (written == NULL || size <= 0)
        return;
    int saved = errno;
    char link[32], path[PATH_SIZE_MAX], kept[2 * PATH_SIZE_MAX];
    REAL(ssize_t, write, int, const void *, size_t);
    int (*real_open)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = is_file(fd) ? readlink(link, path, sizeof path - 1) : -1;
    if (length > 0) {
        path[length] = 0;
        for (char *at = path; *at != 0; at++)
            if (*at == '/')
                *at = '%';
        snprintf(kept, sizeof kept, "%s/%.200s", written, path);
        int to = real_open(kept, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (to < 0 || real(to, buffer, (size_t)size) != size) {
            fprintf(stderr, "fault shim: can't keep what is written in %s: %s\n", kept, strerror(errno));
            _exit(99);
        }
        close(to);
    }
    errno = saved;
}

static int is_kept(int fd) { return written != NULL && is_file(fd); }

/* A short one still writes something. */
static size_t shortened(size_t size) { return size > 1 ? size / 2 : size; }

ssize_t write(int fd, const void *buffer, size_t size) {
    REAL(ssize_t, write, int, const void *, size_t);
    int is = fate_of_descriptor(WRITE, fd);
    FAIL_OR_GO_ON(is, -1);
    ssize_t done = real(fd, buffer, is == SHORT ? shortened(size) : size);
    keep(fd, buffer, done);
    return done;
}

#define PWRITE_AS(name, offset_t)                                                                                      \
    ssize_t name(int fd, const void *buffer, size_t size, offset_t offset) {                                           \
        REAL(ssize_t, name, int, const void *, size_t, offset_t);                                                      \
        int is = fate_of_descriptor(WRITE, fd);                                                                        \
        FAIL_OR_GO_ON(is, -1);                                                                                         \
        ssize_t done = real(fd, buffer, is == SHORT ? shortened(size) : size, offset);                                 \
        keep(fd, buffer, done);                                                                                        \
        return done;                                                                                                   \
    }
PWRITE_AS(pwrite, off_t)
PWRITE_AS(pwrite64, off64_t)

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    int is = fate_of_descriptor(WRITE, fd);
    FAIL_OR_GO_ON(is, -1);
    ssize_t done = real(fd, parts, is == SHORT && count > 1 ? count / 2 : count);
    ssize_t left = done;
    for (int at = 0; left > 0; at++) {
        ssize_t size = left < (ssize_t)parts[at].iov_len ? left : (ssize_t)parts[at].iov_len;
        keep(fd, parts[at].iov_base, size);
        left -= size;
    }
    return done;
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t size, unsigned flags) {
    REAL(ssize_t, copy_file_range, int, off64_t *, int, off64_t *, size_t, unsigned);
    int is = fate_of_descriptor(WRITE, to);
    FAIL_OR_GO_ON(is, -1);
    FAIL_OR_GO_ON(is_kept(to) ? EXDEV : PASS, -1);
    return real(from, from_at, to, to_at, is == SHORT ? shortened(size) : size, flags);
}

#define SENDFILE_AS(name, offset_t)                                                                                    \
    ssize_t name(int to, int from, offset_t *offset, size_t size) {                                                    \
        REAL(ssize_t, name, int, int, offset_t *, size_t);                                                             \
        FAIL_OR_GO_ON(is_kept(to) ? EINVAL : PASS, -1);                                                                \
        return real(to, from, offset, size);                                                                           \
    }
SENDFILE_AS(sendfile, off_t)
SENDFILE_AS(sendfile64, off64_t)

int fsync(int fd) {
    REAL(int, fsync, int);
    FAIL_OR_GO_ON(fate_of_descriptor(SYNC, fd), -1);
    return real(fd);
}

int fdatasync(int fd) {
    REAL(int, fdatasync, int);
    FAIL_OR_GO_ON(fate_of_descriptor(SYNC, fd), -1);
    return real(fd);
}

#define FTRUNCATE_AS(name, offset_t)                                                                                   \
    int name(int fd, offset_t size) {                                                                                  \
        REAL(int, name, int, offset_t);                                                                                \
        FAIL_OR_GO_ON(fate_of_descriptor(TRUNCATE, fd), -1);                                                           \
        return real(fd, size);                                                                                         \
    }
FTRUNCATE_AS(ftruncate, off_t)
FTRUNCATE_AS(ftruncate64, off64_t)

/* The new name decides. */
int rename(const char *from, const char *to) {
    REAL(int, rename, const char *, const char *);
    FAIL_OR_GO_ON(fate_of_path(RENAME, AT_FDCWD, to), -1);
    return real(from, to);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    REAL(int, renameat, int, const char *, int, const char *);
    FAIL_OR_GO_ON(fate_of_path(RENAME, to_dir, to), -1);
    return real(from_dir, from, to_dir, to);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    REAL(int, renameat2, int, const char *, int, const char *, unsigned);
    FAIL_OR_GO_ON(fate_of_path(RENAME, to_dir, to), -1);
    return real(from_dir, from, to_dir, to, flags);
}

int link(const char *from, const char *to) {
    REAL(int, link, const char *, const char *);
    FAIL_OR_GO_ON(fate_of_path(RENAME, AT_FDCWD, to), -1);
    return real(from, to);
}

int unlink(const char *path) {
    REAL(int, unlink, const char *);
    FAIL_OR_GO_ON(fate_of_path(UNLINK, AT_FDCWD, path), -1);
    return real(path);
}

int unlinkat(int dirfd, const char *path, int flags) {
    REAL(int, unlinkat, int, const char *, int);
    FAIL_OR_GO_ON(fate_of_path(UNLINK, dirfd, path), -1);
    return real(dirfd, path, flags);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, mkdir, const char *, mode_t);
    FAIL_OR_GO_ON(fate_of_path(MKDIR, AT_FDCWD, path), -1);
    return real(path, mode);
}

DIR *opendir(const char *path) {
    REAL(DIR *, opendir, const char *);
    FAIL_OR_GO_ON(fate_of_path(LIST, AT_FDCWD, path), NULL);
    return real(path);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    REAL(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int error = fate_of_none(THREAD);
    return error > 0 ? error : real(thread, attributes, start, argument);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    REAL(int, clock_gettime, clockid_t, struct timespec *);
    int done = real(clock, time);
    if (done == 0 && clock == CLOCK_REALTIME && page != NULL) {
        follow_page();
        time->tv_sec += __atomic_load_n(&clock_ahead, __ATOMIC_RELAXED);
    }
    return done;
}

int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags) {
    REAL(int, accept4, int, struct sockaddr *, socklen_t *, int);
    FAIL_OR_GO_ON(fate_of_none(ACCEPT), -1);
    return real(fd, address, size, flags);
}

int accept(int fd, struct sockaddr *address, socklen_t *size) {
    REAL(int, accept, int, struct sockaddr *, socklen_t *);
    FAIL_OR_GO_ON(fate_of_none(ACCEPT), -1);
    return real(fd, address, size);
}
