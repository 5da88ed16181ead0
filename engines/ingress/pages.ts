// Responses of the ingress itself, as pages and as problem documents. They reveal no internals.
import { problem, toDocument, type ErrorCode } from '../../core/errors';
import type { Route } from './ingress';
import type { ServedService } from './platform_services';
import type { VisitorRequest } from './visitor';

/** Why the ingress itself responded, as in the access lines. */
export type Reason =
  | 'malformed'
  | 'too_many_headers'
  | 'unknown_host'
  | 'misdirected'
  | 'starting'
  | 'https'
  | 'maintenance'
  | 'busy'
  | 'address_busy'
  | 'body_too_large'
  | 'slow_client'
  | 'client_gone'
  | 'no_target'
  | 'refused'
  | 'unconfirmed'
  | 'broken'
  | 'timeout'
  | 'not_implemented'
  | 'challenge'
  | 'no_certificate'
  | 'untrusted_proxy'
  | ServiceReason;

/** Why a server of the platform itself does not answer. */
type ServiceReason = 'service_away' | 'service_lost' | 'service_busy' | 'service_address_busy';

export interface Page {
  status: number;
  reason: Reason;
  title: string;
  detail: string;
  /** Seconds for Retry-After. */
  retryAfter?: number;
  /** An error of the API, explained below this address. */
  problem?: { code: ErrorCode; baseUrl: string };
}

type FixedReason = Exclude<Reason, 'no_target' | 'https' | 'client_gone' | 'challenge' | ServiceReason>;

const PAGES: Record<FixedReason, Omit<Page, 'reason'>> = {
  malformed: { status: 400, title: 'Bad request', detail: 'The request is malformed.' },
  // RFC 9110 §15.5.20.
  misdirected: {
    status: 421,
    title: 'Served elsewhere',
    detail: 'Another ingress of the platform serves this address. The DNS records of the name must lead there.',
  },
  unknown_host: { status: 404, title: 'Nothing here', detail: 'There is no application at this address.' },
  starting: {
    status: 503,
    title: 'Starting',
    detail: 'The platform is starting. Try again in a moment.',
    retryAfter: 1,
  },
  slow_client: { status: 408, title: 'Request timeout', detail: 'The request took too long to arrive.' },
  body_too_large: {
    status: 413,
    title: 'Request too large',
    detail: 'The body of the request is larger than this address accepts.',
  },
  too_many_headers: { status: 431, title: 'Too many headers', detail: 'The request has too many headers.' },
  not_implemented: {
    status: 501,
    title: 'Not supported',
    detail: 'The transfer coding of the request is not supported.',
  },
  broken: {
    status: 502,
    title: 'Bad gateway',
    detail: 'The application closed the connection or gave an answer that is not valid HTTP.',
  },
  maintenance: {
    status: 503,
    title: 'Under maintenance',
    detail: 'The application is under maintenance and will be back.',
    retryAfter: 60,
  },
  busy: {
    status: 503,
    title: 'Too busy',
    detail: 'The application has too many open requests. Try again in a moment.',
    retryAfter: 1,
  },
  address_busy: {
    status: 429,
    title: 'Too many requests',
    detail: 'Your address has too many open requests at this application. Try again in a moment.',
    retryAfter: 1,
  },
  refused: {
    status: 503,
    title: 'Not available',
    detail: 'The application does not take requests at the moment. Try again in a moment.',
    retryAfter: 5,
  },
  unconfirmed: {
    status: 503,
    title: 'Not available',
    detail: 'The platform cannot confirm at the moment where the application runs. Try again in a moment.',
    retryAfter: 5,
  },
  timeout: { status: 504, title: 'No answer in time', detail: 'The application did not answer in time.' },
  no_certificate: {
    status: 503,
    title: 'No certificate yet',
    detail:
      'This name of the platform is served over HTTPS alone, and has no certificate yet. Until then, use the address ' +
      'and port of the machine. The operator finds what is missing with `platform doctor`.',
    retryAfter: 30,
  },
  untrusted_proxy: {
    status: 400,
    title: 'Proxy not trusted',
    detail:
      'A proxy in front has taken this request over HTTPS and sent it on over HTTP. The operator has to let it ' +
      'connect over HTTPS, or to set `TRUST_PROXY` to the number of proxies in front.',
  },
};

const SERVICE_PAGES: Record<ServiceReason, Omit<Page, 'reason' | 'problem'> & { code: ErrorCode }> = {
  service_away: {
    status: 503,
    title: 'Restarting',
    detail: 'The platform is restarting. Try again in a moment.',
    retryAfter: 2,
    code: 'service_unavailable',
  },
  service_lost: {
    status: 503,
    title: 'Restarting',
    detail: 'The platform stopped while it worked on this request, which it may have carried out.',
    retryAfter: 2,
    code: 'service_unavailable',
  },
  service_busy: {
    status: 503,
    title: 'Too busy',
    detail: 'The platform has too many open requests. Try again in a moment.',
    retryAfter: 1,
    code: 'service_unavailable',
  },
  service_address_busy: {
    status: 429,
    title: 'Too many requests',
    detail: 'Your address has too many open requests. Try again in a moment.',
    retryAfter: 1,
    code: 'rate_limited',
  },
};

const NO_TARGET: Record<Route['state'], Omit<Page, 'status' | 'reason'>> = {
  new: { title: 'Nothing deployed yet', detail: 'This application has not been deployed yet.', retryAfter: 60 },
  running: { title: 'Starting', detail: 'The application is starting. Try again in a moment.', retryAfter: 5 },
  stopped: { title: 'Stopped', detail: 'The application has been stopped.', retryAfter: 60 },
  crashed: {
    title: 'Not running',
    detail: 'The application has crashed. Its owner finds the reason in its logs.',
    retryAfter: 10,
  },
};

export function fixedPage(reason: FixedReason): Page {
  return { reason, ...PAGES[reason] };
}

export function servicePage(reason: ServiceReason, { baseUrl }: Pick<ServedService, 'baseUrl'>): Page {
  const { code, ...page } = SERVICE_PAGES[reason];
  return { reason, ...page, problem: { code, baseUrl } };
}

export function noTargetPage(state: Route['state']): Page {
  return { status: 503, reason: 'no_target', ...NO_TARGET[state] };
}

/** Headers and body: a page where the client accepts HTML, else a problem document (RFC 9457). */
export function render(
  page: Page,
  request: VisitorRequest | null,
  requestId: string,
): { headers: Record<string, string>; body: string } {
  const html = /text\/html/i.test(request?.headers.accept ?? '');
  const body = html ? htmlOf(page, requestId) : problemOf(page, request, requestId);
  const headers: Record<string, string> = {
    'Content-Type': html ? 'text/html; charset=utf-8' : 'application/problem+json',
    'Content-Length': String(Buffer.byteLength(body)),
    'Cache-Control': 'no-store',
    'X-Request-Id': requestId,
  };
  if (html) headers['Content-Security-Policy'] = "default-src 'none'; style-src 'unsafe-inline'";
  if (page.retryAfter !== undefined) headers['Retry-After'] = String(page.retryAfter);
  return { headers, body };
}

function problemOf(page: Page, request: VisitorRequest | null, request_id: string): string {
  if (page.problem !== undefined) {
    const { code, baseUrl: base_url } = page.problem;
    const instance = (request?.url ?? '/').split('?', 1)[0] as string;
    return JSON.stringify(toDocument(problem(code, page.detail), { base_url, request_id, instance }));
  }
  return JSON.stringify({
    type: 'about:blank',
    title: page.title,
    status: page.status,
    detail: page.detail,
    code: page.reason,
    request_id,
  });
}

const STYLE =
  'body{margin:0;min-height:100vh;display:grid;place-items:center;' +
  'font:16px/1.5 system-ui,sans-serif;background:#f6f7f9;color:#1c2430}' +
  'main{padding:2rem;max-width:32rem}h1{margin:.2rem 0;font-size:1.6rem}p{margin:.4rem 0}small{color:#6b7686}' +
  '@media(prefers-color-scheme:dark){body{background:#14181f;color:#e8ebf0}}';

function htmlOf(page: Page, requestId: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${page.title}</title><style>${STYLE}</style></head>
<body><main><small>${page.status}</small><h1>${page.title}</h1><p>${page.detail}</p>
<small>${requestId}</small></main></body>
</html>
`;
}
