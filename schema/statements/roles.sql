create role :"owner" nologin;
create role :"appender" nologin;
create role :"projector" nologin;
create role :"reader" nologin;
create role :"auditor" nologin;
