import type { CheckOutcome } from '../../core/protocols/checks';
import type { Outbound } from '../../core/outbound';
import { milliseconds, newTrace, OutboundError, timeoutError, type Trace } from '../../core/outbound/trace';
import type { Monitor, ProbeResponse } from '../monitor';
import { checkHttp } from './http';
import { checkPing } from './ping';
import { checkTcp } from './tcp';

const CHECKS = { http: checkHttp, tcp: checkTcp, ping: checkPing };

export function openMonitor(outbound: Outbound): Monitor {
  return {
    async check(check, cut) {
      const trace = newTrace();
      const startedAt = performance.now();
      const end = AbortSignal.timeout(check.timeout_seconds * 1000);
      const signal = cut ? AbortSignal.any([end, cut]) : end;
      try {
        const response = await CHECKS[check.check](outbound, check, trace, signal);
        return outcomeOf(trace, response, milliseconds(performance.now() - startedAt));
      } catch (error) {
        if (cut?.aborted) throw error;
        if (signal.aborted) return failureOf(trace, timeoutError(trace, check.timeout_seconds));
        if (error instanceof OutboundError) return failureOf(trace, error);
        throw error;
      }
    },
  };
}

function outcomeOf(trace: Trace, { status_code, error }: ProbeResponse, response_time_ms: number): CheckOutcome {
  const { timings, certificate_expires_at, certificate_authority } = trace;
  const status = error === null ? 'pass' : 'fail';
  return {
    status,
    response_time_ms,
    status_code,
    value: null,
    error,
    timings,
    certificate_expires_at,
    certificate_authority,
    unreachable: false,
  };
}

function failureOf(trace: Trace, { message, unreachable }: OutboundError): CheckOutcome {
  const { timings, certificate_expires_at, certificate_authority } = trace;
  return {
    ...{ status: 'fail', response_time_ms: null, status_code: null, value: null, error: message },
    ...{ timings, certificate_expires_at, certificate_authority, unreachable },
  };
}
