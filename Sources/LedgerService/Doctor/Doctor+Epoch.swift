internal import EventLog

extension Doctor {
    /// Whether the ledger is on the server that its epoch was opened on.
    func epoch() throws -> Diagnosis {
        let book = EpochBook(connection)
        let present = try book.all().last
        do throws(EventLogError) { try book.check() } catch {
            guard error.code == .restored else { throw error }
            return Diagnosis(
                "epoch",
                .fail,
                error.message,
                remedy: "look what is missing (subledger db check-restore), then: subledger db "
                    + "restored --operator WHO --why TEXT"
            )
        }
        return Diagnosis("epoch", .ok, "\(present?.number ?? 0), on this server")
    }
}
