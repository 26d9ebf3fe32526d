#ifndef SUBLEDGER_CPOSTGRES_SHIM_PROCESS_H
#define SUBLEDGER_CPOSTGRES_SHIM_PROCESS_H

#include <spawn.h>

// Swift's Glibc module is built without _GNU_SOURCE and so hides what follows, which the embedded
// server needs; the declarations are glibc's own.
extern int pipe2(int ends[2], int flags);
extern int posix_spawn_file_actions_addchdir_np(
    posix_spawn_file_actions_t *actions, const char *path);
extern int posix_spawn_file_actions_addclosefrom_np(
    posix_spawn_file_actions_t *actions, int from);

static inline int shim_pipe2(int *ends, int flags) { return pipe2(ends, flags); }
static inline int shim_spawn_chdir(posix_spawn_file_actions_t *actions, const char *path) {
    return posix_spawn_file_actions_addchdir_np(actions, path);
}
static inline int shim_spawn_close_from(posix_spawn_file_actions_t *actions, int from) {
    return posix_spawn_file_actions_addclosefrom_np(actions, from);
}
// POSIX_SPAWN_SETSID, from glibc 2.26 on.
static inline int shim_spawn_setsid(void) { return 0x80; }

#endif
