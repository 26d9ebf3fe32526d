import Postgres
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(2))) struct TestServerTests {
    @Test func aDatabaseOfItsOwnIsEmptyAndUsable() throws {
        try withDatabase { connection in
            try connection.execute("create table t (a int); insert into t values (1), (2)")
            #expect(try connection.query("select sum(a) from t").int(0, 0) == 3)
        }
    }
}
