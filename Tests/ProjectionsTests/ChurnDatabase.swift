import EventLog
import Ledger
import LedgerService
import Postgres
import Projections
import TestSupport

/// A database with the ledger's schema, whose read model "churn" holds the lives of a test.
struct ChurnDatabase {
    let database: TestDatabase
    let connection: Connection

    init() throws {
        database = try TestDatabase.create(template: "ledger with read models for churn") {
            try Migrator($0, extra: ReadModels.migrations).migrate()
        }
        connection = try database.connect()
        try connection.execute(
            """
            insert into ledger.app (app_id, bundle_id, environment)
            values (1, 'com.example.app', 'Production'), (2, 'com.example.app', 'Sandbox')
            """
        )
    }

    /// Writes the rows of lives, each a stream of its own.
    func write(_ lives: [ChurnLife], app: Int32 = 1) throws {
        var rows = ProjectedRows(Churn.tables)
        for (number, life) in lives.enumerated() {
            let subject = Subject(appID: app, stream: "\(700_000 + number)", rules: life.rules)
            Churn().write(life.history, of: subject, into: &rows)
        }
        let columns = Churn.tables[0].columns.joined(separator: ", ")
        try connection.copyIn(
            "copy read_model.lifecycle_moment_g1 (\(columns)) from stdin (format binary)"
        ) { try $0.write(rows.tables[0].buffer) }
    }

    /// The rows of a query, each as its columns by name.
    func rows(_ sql: String) throws -> [[String: String]] {
        let plain = try connection.query(
            "select r.key, r.value, t.n from (select *, row_number() over () as n from (\(sql)) q)"
                + " t cross join lateral jsonb_each_text(to_jsonb(t)) r order by t.n"
        )
        var result: [[String: String]] = []
        for row in 0..<plain.count {
            let number = Int(plain.int(row, 2) ?? 0)
            if result.count < number { result.append([:]) }
            result[number - 1][plain.text(row, 0) ?? ""] = plain.text(row, 1)
        }
        return result
    }
}

extension [String: String] {
    /// The column as a whole number, 0 where it is null.
    func int(_ column: String) -> Int { self[column].flatMap { Int($0) } ?? 0 }

    /// The product and currency of the row.
    var key: ChurnLife.Key {
        ChurnLife.Key(
            product: self["product_id"].map { Symbol($0) },
            currency: self["currency"].map { Symbol($0) }
        )
    }
}
