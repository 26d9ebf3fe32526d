import EventLog
import Foundation
import Ledger
import Testing

@testable import LedgerService

/// What keeps those who ask, and what goes wrong again and again, within bounds.
@Suite struct ServiceLimitsTests {
    @Test func aPlaceIsFreeAgainWhenNobodyHoldsIt() {
        let places = WaitingPlaces(max: 2)
        var held = [places.place(), places.place()]
        #expect(held.allSatisfy { $0 != nil })
        #expect(places.place() == nil)
        #expect(places.place() == nil, "who was turned away takes none")
        held.removeLast()
        let next = places.place()
        #expect(next != nil)
        #expect(places.place() == nil)
    }

    @Test func whatFailsIsSaidOnceForEachReasonAndWhenItWorksAgain() {
        let pipe = Pipe()
        let log = ServiceLog(descriptor: pipe.fileHandleForWriting.fileDescriptor) {
            Timestamp(milliseconds: 0)
        }
        let trouble = TroubleLog("append", log)
        trouble.note(nil)
        for _ in 0..<5 { trouble.note(EventLogError(.unavailable, "permission denied")) }
        trouble.note(EventLogError(.unavailable, "read-only"))
        trouble.note(nil)
        trouble.note(nil)
        pipe.fileHandleForWriting.closeFile()
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        let said = text.split(separator: "\n")
        #expect(said.count == 3)
        #expect(said[0].contains("\"append_failed\"") && said[0].contains("permission denied"))
        #expect(said[1].contains("read-only") && said[1].contains("\"not_logged\":4"))
        #expect(said[2].contains("\"append_works_again\""))
    }
}
