import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

@Suite struct GatekeeperTests {
    private let fixture: LogFixture
    private let tokens: APITokens

    init() throws {
        fixture = try LogFixture()
        tokens = APITokens(fixture.connection)
    }

    @Test func aTokenOpensWhatItsRoleMayAndNothingOnceRevoked() throws {
        let gatekeeper = Gatekeeper(connect: fixture.connect)
        let (token, kept) = try tokens.create(.auditor, name: "finance", by: "kim")
        #expect(
            gatekeeper.judge(authorization: "Bearer \(token)", address: "a")
                == .admitted(id: kept.id, role: .auditor)
        )
        #expect(
            gatekeeper.judge(authorization: "bearer  \(token)", address: "a")
                == .admitted(id: kept.id, role: .auditor)
        )
        #expect(try tokens.revoke(kept.id, by: "lee") == .revoked)
        #expect(try tokens.revoke(kept.id, by: "lee") == .revokedBefore)
        #expect(try tokens.revoke("000000000000", by: "lee") == .unknown)
        gatekeeper.forget()
        #expect(gatekeeper.judge(authorization: "Bearer \(token)", address: "a") == .unknown)
    }

    @Test func theTokenItselfIsNowhereInTheDatabase() throws {
        let (token, kept) = try tokens.create(.reader, name: "app", by: "kim")
        let secret = String(token.split(separator: "_", maxSplits: 2)[2])
        #expect(secret.count == 43, "32 random bytes")
        let row = try fixture.connection.query(
            "select row_to_json(t)::text from ledger.api_token t"
        )
        #expect(row.text(0, 0)?.contains(kept.id) == true)
        #expect(row.text(0, 0)?.contains(secret) == false)
        #expect(try tokens.create(.reader, name: "app", by: "kim").token != token)
    }

    @Test(arguments: [nil, "", "Bearer", "Basic abc", "Bearer a b", "Bearer subledger_x_y"])
    func whatIsNoTokenOpensNothing(_ header: String?) throws {
        let gatekeeper = Gatekeeper(connect: fixture.connect)
        _ = try tokens.create(.reader, name: "app", by: "kim")
        #expect(gatekeeper.judge(authorization: header, address: "a") == .unknown)
    }

    @Test func whoGuessesMustWaitAndOthersNeedNot() throws {
        let gatekeeper = Gatekeeper(connect: fixture.connect)
        let (token, kept) = try tokens.create(.reader, name: "app", by: "kim")
        for _ in 0..<Gatekeeper.failuresMax {
            #expect(gatekeeper.judge(authorization: "Bearer guess", address: "a") == .unknown)
        }
        let verdict = gatekeeper.judge(authorization: "Bearer guess", address: "a")
        guard case .tooMany(let seconds) = verdict else {
            Issue.record("\(verdict)")
            return
        }
        #expect((1...61).contains(seconds))
        #expect(gatekeeper.judge(authorization: nil, address: "a") != .unknown)
        #expect(gatekeeper.judge(authorization: "Bearer guess", address: "b") == .unknown)
        // Whoever shares the address and has a good token is let in all the same.
        for address in ["a", "b"] {
            #expect(
                gatekeeper.judge(authorization: "Bearer \(token)", address: address)
                    == .admitted(id: kept.id, role: .reader)
            )
        }
        // A good answer in between does not give the guesser new guesses.
        guard case .tooMany = gatekeeper.judge(authorization: "Bearer guess", address: "a") else {
            Issue.record("the limit is gone")
            return
        }
        #expect(try tokens.revoke(kept.id, by: "lee") == .revoked)
        gatekeeper.forget()
        guard case .tooMany = gatekeeper.judge(authorization: "Bearer \(token)", address: "a")
        else {
            Issue.record("a revoked token is no better than a guess")
            return
        }
        #expect(gatekeeper.refused.value == Gatekeeper.failuresMax + 4)
    }

    @Test func withoutADatabaseTheTokensReadLastCountForAWhile() throws {
        let isAway = Atomic<Bool>(false)
        let connect = fixture.connect
        let gatekeeper = Gatekeeper {
            if isAway.load(ordering: .relaxed) {
                throw PostgresError(code: .connection, message: "no server here")
            }
            return try connect()
        }
        let (token, kept) = try tokens.create(.reader, name: "app", by: "kim")
        let good = Gatekeeper.Verdict.admitted(id: kept.id, role: .reader)
        #expect(gatekeeper.judge(authorization: "Bearer \(token)", address: "a") == good)
        isAway.store(true, ordering: .relaxed)
        #expect(gatekeeper.judge(authorization: "Bearer \(token)", address: "a") == good)
        gatekeeper.forget()
        #expect(
            gatekeeper.judge(authorization: "Bearer \(token)", address: "a") == .unavailable
        )
    }

    @Test func aTokenIsNeverChangedNorRemoved() throws {
        let (_, kept) = try tokens.create(.reader, name: "app", by: "kim")
        _ = try tokens.revoke(kept.id, by: "lee")
        for statement in [
            "update ledger.api_token set role = 'auditor'", "delete from ledger.api_token",
            "delete from ledger.api_token_revocation",
            "update ledger.api_token_revocation set revoked_by = 'x'",
            "truncate ledger.api_token_revocation",
        ] {
            #expect(throws: PostgresError.self) { try fixture.connection.execute(statement) }
        }
    }
}
