#!/bin/sh
# Run by the postgres image once, when the data folder is made: the roles, and a login that serves.
#
# The login may do what subledger does and cannot change the log; `serve` refuses any other. The
# roles are those that `subledger migrate --print-roles` prints for a database called subledger.
set -eu

psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" \
    --set "password=$SUBLEDGER_SERVICE_PASSWORD" <<'SQL'
create role subledger_owner nologin;
create role subledger_appender nologin;
create role subledger_projector nologin;
create role subledger_reader nologin;
create role subledger_auditor nologin;
create role service login password :'password';
grant subledger_appender, subledger_projector, subledger_reader, subledger_auditor to service;
SQL
