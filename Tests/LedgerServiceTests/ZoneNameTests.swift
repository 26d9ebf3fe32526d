import Ledger
import Postgres
import TestSupport
import Testing

@testable import LedgerService

/// Which texts name a zone; PostgreSQL takes nearly any.
@Suite struct ZoneNameTests {
    private func isZone(_ name: String, _ connection: Connection) throws -> Bool {
        do {
            try ZoneName.check(name, connection)
            return true
        } catch {
            #expect(error.sqlState == "22023")
            #expect(error.message.contains(name) && error.message.contains("Europe/Berlin"))
            return false
        }
    }

    @Test func namesOfTheDatabaseOfZonesAreTakenAndNothingElse() throws {
        let fixture = try LogFixture()
        let connection = fixture.connection
        for name in ["UTC", "Europe/Berlin", "asia/kolkata", "America/Sao_Paulo", "Etc/GMT+5"] {
            #expect(try isZone(name, connection), "\(name)")
            #expect(try isZone(name, connection), "\(name), which is known now")
        }
        // The server reads each of these as some zone, most with the sign reversed.
        let others = [
            "+05:30", "-05:30", "5", "UTC+5:30", "Nope5", "Europe/Berlin1", "X-167", "IST",
            "posixrules", "posix/Europe/Berlin", "right/UTC", "<+05>-5", "europe/berlin ",
        ]
        for name in others {
            #expect(try !isZone(name, connection), "\(name)")
            #expect(try !isZone(name, connection), "\(name), asked again")
        }
    }

    @Test func noReportTakesAnotherZone() throws {
        let fixture = try LogFixture()
        let connection = fixture.connection
        func state(_ ask: () throws -> Void) -> String? {
            do { try ask() } catch let error as ReadModelError { return error.sqlState } catch {}
            return nil
        }
        for zone in ["+05:30", "Nope5"] {
            let churn = ChurnQuery(
                since: "2025-01-01",
                until: "2025-03-01",
                zone: zone,
                asOf: .earliest
            )
            #expect(state { _ = try churn.subscribers(connection) } == "22023")
            #expect(state { _ = try churn.value(connection) } == "22023")
            let rate = RecoveryRateQuery(
                since: "2025-01-01",
                until: "2025-03-01",
                zone: zone,
                asOf: .earliest
            )
            #expect(state { _ = try rate.rows(connection) } == "22023")
            let monthly = ExtensionMonthlyQuery(
                since: "2025-01-01",
                until: "2025-03-01",
                zone: zone
            )
            #expect(state { _ = try monthly.rows(connection) } == "22023")
        }
    }
}
