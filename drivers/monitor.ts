// Checks of targets from here: http, tcp, ping. Each on a fresh connection, bounded in time and size.
import type { CheckOutcome, UptimeCheck } from '../core/protocols/checks';

/** What a check has heard beyond its trace. `error`: null where all is as expected. */
export interface ProbeResponse {
  status_code: number | null;
  error: string | null;
}

export interface Monitor {
  /** Never throws for what the target did; rejects when the signal is aborted. */
  check(check: UptimeCheck, signal?: AbortSignal): Promise<CheckOutcome>;
}
