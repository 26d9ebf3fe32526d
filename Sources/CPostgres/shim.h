#ifndef SUBLEDGER_CPOSTGRES_SHIM_H
#define SUBLEDGER_CPOSTGRES_SHIM_H

#include <libpq-fe.h>

// PG_DIAG_SQLSTATE is a character constant, which Swift imports as Int32 only by luck of the
// header; this names it.
static inline int shim_diag_sqlstate(void) { return PG_DIAG_SQLSTATE; }
static inline int shim_diag_message_primary(void) { return PG_DIAG_MESSAGE_PRIMARY; }
static inline int shim_diag_severity(void) { return PG_DIAG_SEVERITY_NONLOCALIZED; }

#endif
