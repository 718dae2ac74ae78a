/* Sees what a process does to the files below one folder, and lets syncs and writes fail on order.
 *
 * Loaded by LD_PRELOAD, so that it also sees RocksDB. It
 *   - keeps a journal of every change to a file or a directory and of every sync, in the order in
 *     which they happened, from which disk.py makes what a power loss may leave;
 *   - lets the Nth fsync or fdatasync, and as many after it as wanted, fail with EIO, undone;
 *   - lets syncs, writes, reads, opens, links and renames of files whose path has a text fail, with
 *     any errno, and lets writes be short: half of the bytes are written, as write(2) may;
 *   - refuses to let the folder grow beyond a quota, with ENOSPC.
 * A change and its entry in the journal are made under one lock. A sync has two entries, before and
 * after: only what was written before its first one is durable at its second one.
 *
 * Linux, 64 bit. What it cannot follow (shared mappings, copies inside the kernel) goes into the
 * journal as such, and whoever reads the journal refuses it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind {
    STARTED = 1, OPENED, WRITTEN, RESIZED, SYNC_BEGUN, SYNC_ENDED,
    RENAMED, UNLINKED, MADE_FOLDER, LINKED, NOTED, UNFOLLOWED
};

struct entry { /* followed by two texts; journal.py reads the same */
    uint32_t magic, kind;
    uint64_t handle;
    int64_t number, detail;
    uint32_t first_bytes, second_bytes;
} __attribute__((packed));

enum { MAGIC = 0x4A4F5552, MOST_FILES = 8192 };

static struct { uint64_t handle; dev_t device; ino_t inode; } files[MOST_FILES];
static uint64_t handles;
static char folder[PATH_MAX];
static size_t folder_bytes;
static int journal = -1;
static long syncs, first_failing, failing, quota = -1;
static struct { char call[8], text[64]; long first, count, seen; int error; } orders[8];
static int many_orders;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* of all above */

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) { fprintf(stderr, "fault_shim: no %s\n", name); abort(); }
    return found;
}
#define CALL(name, ...) ({ \
    static __typeof__(&name) found; \
    if (!found) found = REAL(name); \
    found(__VA_ARGS__); })

/* -- the journal */

static void put(enum kind kind, uint64_t handle, int64_t number, int64_t detail,
                const void *first, size_t first_bytes, const void *second, size_t second_bytes) {
    if (journal < 0) return;
    int before = errno;
    struct entry entry = {MAGIC, kind, handle, number, detail, first_bytes, second_bytes};
    struct iovec pieces[] = {{&entry, sizeof entry}, {(void *)first, first_bytes},
                             {(void *)second, second_bytes}};
    size_t whole = sizeof entry + first_bytes + second_bytes;
    if (CALL(writev, journal, pieces, 3) != (ssize_t)whole) {
        fprintf(stderr, "fault_shim: the journal cannot be written\n");
        abort();
    }
    errno = before;
}

static void put_paths(enum kind kind, const char *first, const char *second) {
    put(kind, 0, 0, 0, first, strlen(first), second, second ? strlen(second) : 0);
}

/* -- what is watched */

static int below(const char *path) {
    return folder_bytes && !strncmp(path, folder, folder_bytes)
        && (path[folder_bytes] == '/' || !path[folder_bytes]);
}

/* The absolute path, in a buffer of PATH_MAX; whether it is watched. */
static int resolve(int at, const char *path, char *out) {
    if (!folder_bytes || !path) return 0;
    if (path[0] == '/') {
        snprintf(out, PATH_MAX, "%s", path);
    } else {
        char base[PATH_MAX];
        if (at == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return 0;
        } else {
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", at);
            ssize_t length = readlink(link, base, sizeof base - 1);
            if (length < 0) return 0;
            base[length] = 0;
        }
        if (snprintf(out, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return 0;
    }
    size_t length = strlen(out);
    while (length > 1 && out[length - 1] == '/') out[--length] = 0;
    return below(out);
}

/* The handle of a watched file; 0 for others, also when the number was given to another file. */
static uint64_t handle_of(int fd) {
    struct stat found;
    if (fd < 0 || fd >= MOST_FILES || !files[fd].handle) return 0;
    if (fstat(fd, &found) || found.st_ino != files[fd].inode || found.st_dev != files[fd].device)
        return 0;
    return files[fd].handle;
}

static long used_in(const char *path) {
    long used = 0;
    DIR *opened = opendir(path);
    if (!opened) return 0;
    for (struct dirent *entry; (entry = readdir(opened));) {
        char inner[PATH_MAX];
        struct stat found;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) >= PATH_MAX) continue;
        if (lstat(inner, &found)) continue;
        if (S_ISDIR(found.st_mode)) used += used_in(inner);
        else used += found.st_size / (long)(found.st_nlink ? found.st_nlink : 1);
    }
    closedir(opened);
    return used;
}

/* Whether a call to a file of this path fails on order; errno says how. The guard is held. */
static int fails_at(const char *call, const char *path) {
    int failed = 0;
    for (int at = 0; at < many_orders; at++) {
        if (strcmp(orders[at].call, call) || !strstr(path, orders[at].text)) continue;
        long seen = ++orders[at].seen;
        if (seen < orders[at].first || seen >= orders[at].first + orders[at].count) continue;
        errno = orders[at].error;
        failed = 1;
    }
    return failed;
}

static int fails_on(const char *call, int fd) {
    char link[64], path[PATH_MAX];
    if (!many_orders) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails_at(call, path);
}

/* How much of this write the quota lets through; -1 with ENOSPC when nothing. */
static ssize_t admitted(int fd, off_t offset, size_t wanted) {
    struct stat found;
    if (quota < 0 || !wanted || fstat(fd, &found)) return wanted;
    off_t growth = offset + (off_t)wanted - found.st_size;
    off_t left = quota - used_in(folder);
    if (growth <= 0 || growth <= left) return wanted;
    off_t fits = (off_t)wanted - (growth - (left > 0 ? left : 0));
    if (fits <= 0) { errno = ENOSPC; return -1; }
    return fits;
}

/* -- orders, by ctypes */

void shim_watch(const char *path, const char *journal_path) {
    pthread_mutex_lock(&guard);
    if (journal >= 0) CALL(close, journal);
    journal = -1;
    memset(files, 0, sizeof files);
    folder_bytes = snprintf(folder, sizeof folder, "%s", path);
    syncs = first_failing = failing = many_orders = 0;
    quota = -1;
    if (*journal_path) {
        journal = CALL(open64, journal_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (journal < 0) { perror("fault_shim: journal"); abort(); }
        put(STARTED, 0, 0, 0, folder, folder_bytes, 0, 0);
    }
    pthread_mutex_unlock(&guard);
}

void shim_note(const char *text, size_t bytes) {
    pthread_mutex_lock(&guard);
    put(NOTED, 0, 0, 0, text, bytes, 0, 0);
    pthread_mutex_unlock(&guard);
}

void shim_fail_syncs(long first, long count) { /* counted from now on */
    pthread_mutex_lock(&guard);
    first_failing = first ? syncs + first : 0;
    failing = count;
    pthread_mutex_unlock(&guard);
}

long shim_syncs(void) { return syncs; }

/* Let some calls (sync, write, short, read, open, link, rename) fail; all orders go with an empty call. */
void shim_fail_calls(const char *call, const char *text, long first, long count, int error) {
    pthread_mutex_lock(&guard);
    if (!*call) {
        many_orders = 0;
    } else {
        if (many_orders == 8) { fprintf(stderr, "fault_shim: too many orders\n"); abort(); }
        snprintf(orders[many_orders].call, sizeof orders[0].call, "%s", call);
        snprintf(orders[many_orders].text, sizeof orders[0].text, "%s", text);
        orders[many_orders].first = first;
        orders[many_orders].count = count;
        orders[many_orders].seen = 0;
        orders[many_orders].error = error;
        many_orders++;
    }
    pthread_mutex_unlock(&guard);
}

long shim_seen(void) { /* how many calls the first order has met */
    return many_orders ? orders[0].seen : 0;
}

void shim_quota(long bytes) {
    pthread_mutex_lock(&guard);
    quota = bytes;
    pthread_mutex_unlock(&guard);
}

/* -- opening and closing */

static int opened(int fd, const char *path, int flags) {
    struct stat found;
    if (fd >= 0 && fstat(fd, &found) == 0) {
        if (fd >= MOST_FILES) { put_paths(UNFOLLOWED, "too many files", 0); return fd; }
        files[fd].handle = ++handles;
        files[fd].device = found.st_dev;
        files[fd].inode = found.st_ino;
        put(OPENED, handles, !!(flags & O_CREAT), !!(flags & O_TRUNC), path, strlen(path), 0, 0);
    }
    return fd;
}

#define OPEN_BODY(at, call) \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); \
    } \
    char whole[PATH_MAX]; \
    if (!resolve(at, path, whole)) return call; \
    pthread_mutex_lock(&guard); \
    int fd = fails_at("open", whole) ? -1 : opened(call, whole, flags); \
    pthread_mutex_unlock(&guard); \
    return fd;

int open(const char *path, int flags, ...) {
    OPEN_BODY(AT_FDCWD, CALL(open, path, flags, mode))
}
int open64(const char *path, int flags, ...) {
    OPEN_BODY(AT_FDCWD, CALL(open64, path, flags, mode))
}
int openat(int at, const char *path, int flags, ...) {
    OPEN_BODY(at, CALL(openat, at, path, flags, mode))
}
int openat64(int at, const char *path, int flags, ...) {
    OPEN_BODY(at, CALL(openat64, at, path, flags, mode))
}
int creat(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

int close(int fd) {
    if (fd < 0 || fd >= MOST_FILES || !files[fd].handle) return CALL(close, fd);
    pthread_mutex_lock(&guard);
    files[fd].handle = 0;
    int result = CALL(close, fd);
    pthread_mutex_unlock(&guard);
    return result;
}

static int duplicated(int from, int to) {
    if (to >= 0 && to < MOST_FILES && from >= 0 && from < MOST_FILES) {
        pthread_mutex_lock(&guard);
        files[to] = files[from];
        pthread_mutex_unlock(&guard);
    }
    return to;
}
int dup(int fd) { return duplicated(fd, CALL(dup, fd)); }
int dup2(int fd, int to) { return duplicated(fd, CALL(dup2, fd, to)); }
int dup3(int fd, int to, int flags) { return duplicated(fd, CALL(dup3, fd, to, flags)); }

/* -- content */

#define WRITE_BODY(position, call_for_all, call) \
    if (!handle_of(fd)) return call_for_all; \
    pthread_mutex_lock(&guard); \
    off_t offset = position; \
    ssize_t done = fails_on("write", fd) ? -1 : admitted(fd, offset, wanted); \
    if (done > 1 && fails_on("short", fd)) done = (done + 1) / 2; \
    if (done >= 0) { \
        wanted = done; \
        done = call; \
        if (done > 0) put(WRITTEN, files[fd].handle, offset, 0, content, done, 0, 0); \
    } \
    pthread_mutex_unlock(&guard); \
    return done;

static off_t write_position(int fd) {
    struct stat found;
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && flags & O_APPEND && fstat(fd, &found) == 0) return found.st_size;
    return lseek(fd, 0, SEEK_CUR);
}

ssize_t write(int fd, const void *content, size_t wanted) {
    WRITE_BODY(write_position(fd), CALL(write, fd, content, wanted), CALL(write, fd, content, wanted))
}
ssize_t pwrite(int fd, const void *content, size_t wanted, off_t at) {
    WRITE_BODY(at, CALL(pwrite, fd, content, wanted, at), CALL(pwrite, fd, content, wanted, at))
}
ssize_t pwrite64(int fd, const void *content, size_t wanted, off_t at) {
    WRITE_BODY(at, CALL(pwrite64, fd, content, wanted, at), CALL(pwrite64, fd, content, wanted, at))
}

#define READ_BODY(call) \
    if (!many_orders || !handle_of(fd)) return call; \
    pthread_mutex_lock(&guard); \
    int failed = fails_on("read", fd); \
    pthread_mutex_unlock(&guard); \
    return failed ? -1 : call;

ssize_t read(int fd, void *into, size_t wanted) { READ_BODY(CALL(read, fd, into, wanted)) }
ssize_t pread(int fd, void *into, size_t wanted, off_t at) {
    READ_BODY(CALL(pread, fd, into, wanted, at))
}
ssize_t pread64(int fd, void *into, size_t wanted, off_t at) {
    READ_BODY(CALL(pread64, fd, into, wanted, at))
}

ssize_t writev(int fd, const struct iovec *pieces, int count) {
    if (!handle_of(fd)) return CALL(writev, fd, pieces, count);
    ssize_t all = 0; /* one write a piece: a short one ends it, as writev may */
    for (int at = 0; at < count; at++) {
        ssize_t done = write(fd, pieces[at].iov_base, pieces[at].iov_len);
        if (done < 0) return all ? all : done;
        all += done;
        if (done < (ssize_t)pieces[at].iov_len) break;
    }
    return all;
}

static void not_followed(int fd, const char *call) {
    if (!handle_of(fd)) return;
    pthread_mutex_lock(&guard);
    put_paths(UNFOLLOWED, call, 0);
    pthread_mutex_unlock(&guard);
}

ssize_t sendfile(int out, int in, off_t *at, size_t count) {
    not_followed(out, "sendfile");
    return CALL(sendfile, out, in, at, count);
}
ssize_t sendfile64(int out, int in, off_t *at, size_t count) {
    not_followed(out, "sendfile64");
    return CALL(sendfile64, out, in, at, count);
}
ssize_t copy_file_range(int in, off_t *from, int out, off_t *to, size_t count, unsigned flags) {
    not_followed(out, "copy_file_range");
    return CALL(copy_file_range, in, from, out, to, count, flags);
}
int fallocate(int fd, int mode, off_t offset, off_t length) {
    not_followed(fd, "fallocate");
    return CALL(fallocate, fd, mode, offset, length);
}
int posix_fallocate(int fd, off_t offset, off_t length) {
    not_followed(fd, "posix_fallocate");
    return CALL(posix_fallocate, fd, offset, length);
}
void *mmap(void *where, size_t length, int protection, int flags, int fd, off_t offset) {
    if (fd >= 0 && flags & MAP_SHARED && protection & PROT_WRITE) not_followed(fd, "mmap");
    return CALL(mmap, where, length, protection, flags, fd, offset);
}
void *mmap64(void *where, size_t length, int protection, int flags, int fd, off_t offset) {
    if (fd >= 0 && flags & MAP_SHARED && protection & PROT_WRITE) not_followed(fd, "mmap64");
    return CALL(mmap64, where, length, protection, flags, fd, offset);
}

#define RESIZE_BODY(call) \
    if (!handle_of(fd)) return call; \
    pthread_mutex_lock(&guard); \
    int result = call; \
    if (!result) put(RESIZED, files[fd].handle, size, 0, 0, 0, 0, 0); \
    pthread_mutex_unlock(&guard); \
    return result;

int ftruncate(int fd, off_t size) { RESIZE_BODY(CALL(ftruncate, fd, size)) }
int ftruncate64(int fd, off_t size) { RESIZE_BODY(CALL(ftruncate64, fd, size)) }

int truncate(const char *path, off_t size) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    int result = ftruncate(fd, size);
    close(fd);
    return result;
}
int truncate64(const char *path, off_t size) { return truncate(path, size); }

/* -- syncs */

static int sync_one(int fd, int only_content, int (*really)(int)) {
    uint64_t handle = handle_of(fd);
    if (!handle) return really(fd);
    pthread_mutex_lock(&guard);
    long number = ++syncs;
    int fails = first_failing && number >= first_failing && number < first_failing + failing;
    errno = EIO;
    fails |= fails_on("sync", fd);
    int error = errno;
    put(SYNC_BEGUN, handle, number, only_content, 0, 0, 0, 0);
    pthread_mutex_unlock(&guard);
    errno = error;
    int result = fails ? -1 : really(fd);
    pthread_mutex_lock(&guard);
    put(SYNC_ENDED, handle, number, !result, 0, 0, 0, 0);
    pthread_mutex_unlock(&guard);
    return result;
}
int fsync(int fd) { return sync_one(fd, 0, REAL(fsync)); }
int fdatasync(int fd) { return sync_one(fd, 1, REAL(fdatasync)); }

/* -- names */

#define TWO_PATHS(at1, at2, what, call) \
    char first[PATH_MAX], second[PATH_MAX]; \
    int watched = resolve(at1, from, first); \
    watched |= resolve(at2, to, second); \
    if (!watched) return call; \
    pthread_mutex_lock(&guard); \
    int result = fails_at(what == LINKED ? "link" : "rename", second) ? -1 : call; \
    if (!result) put_paths(what, first, second); \
    pthread_mutex_unlock(&guard); \
    return result;

int rename(const char *from, const char *to) {
    TWO_PATHS(AT_FDCWD, AT_FDCWD, RENAMED, CALL(rename, from, to))
}
int renameat(int at1, const char *from, int at2, const char *to) {
    TWO_PATHS(at1, at2, RENAMED, CALL(renameat, at1, from, at2, to))
}
int renameat2(int at1, const char *from, int at2, const char *to, unsigned flags) {
    TWO_PATHS(at1, at2, RENAMED, CALL(renameat2, at1, from, at2, to, flags))
}
int link(const char *from, const char *to) {
    TWO_PATHS(AT_FDCWD, AT_FDCWD, LINKED, CALL(link, from, to))
}
int linkat(int at1, const char *from, int at2, const char *to, int flags) {
    TWO_PATHS(at1, at2, LINKED, CALL(linkat, at1, from, at2, to, flags))
}

#define ONE_PATH(at, what, call) \
    char whole[PATH_MAX]; \
    if (!resolve(at, path, whole)) return call; \
    pthread_mutex_lock(&guard); \
    int result = call; \
    if (!result) put_paths(what, whole, 0); \
    pthread_mutex_unlock(&guard); \
    return result;

int unlink(const char *path) { ONE_PATH(AT_FDCWD, UNLINKED, CALL(unlink, path)) }
int unlinkat(int at, const char *path, int flags) {
    ONE_PATH(at, UNLINKED, CALL(unlinkat, at, path, flags))
}
int rmdir(const char *path) { ONE_PATH(AT_FDCWD, UNLINKED, CALL(rmdir, path)) }
int mkdir(const char *path, mode_t mode) {
    ONE_PATH(AT_FDCWD, MADE_FOLDER, CALL(mkdir, path, mode))
}
int mkdirat(int at, const char *path, mode_t mode) {
    ONE_PATH(at, MADE_FOLDER, CALL(mkdirat, at, path, mode))
}

/* -- free space */

#define SPACE_BODY(call) \
    char whole[PATH_MAX]; \
    int result = call; \
    if (!result && quota >= 0 && resolve(AT_FDCWD, path, whole)) { \
        long left = quota - used_in(folder); \
        out->f_blocks = quota / out->f_frsize; \
        out->f_bavail = out->f_bfree = (left > 0 ? left : 0) / out->f_frsize; \
    } \
    return result;

int statvfs(const char *path, struct statvfs *out) { SPACE_BODY(CALL(statvfs, path, out)) }
int statvfs64(const char *path, struct statvfs64 *out) { SPACE_BODY(CALL(statvfs64, path, out)) }
