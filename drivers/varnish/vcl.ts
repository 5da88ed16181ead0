// The Varnish configuration. Storability and freshness are decided by the gateway, with the same code as in the
// embedded cache; Varnish stores, collapses requests and purges. Zone settings are sent with each request, so that
// their changes need no new configuration (docs/decisions/0046).
import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import { FIELD, INTERNAL } from './fields';

interface VclOptions {
  /** Address of the gateway for Varnish. */
  host: string;
  port: number;
  token: string;
}

const {
  token,
  zone,
  site,
  key,
  serveStale,
  ttl,
  whileRevalidate,
  ifError,
  strict,
  gzip,
  state,
  staleAllowed,
  staleChosen,
} = FIELD;
/** Hit-for-miss time of responses that are not stored: later requests do not wait for each other. */
const NOT_KEPT = '60s';
/** Grace of stale objects in Varnish; the rules of the zone decide about their use. */
const EVER = '3650d';

const head = (gateway: VclOptions): string => `vcl 4.1;
import std;

backend gateway {
  .host = "${gateway.host}";
  .port = "${gateway.port}";
  .connect_timeout = 5s;
  .first_byte_timeout = 70s;
  .between_bytes_timeout = 70s;
}

sub vcl_recv {
  if (req.http.${token} != "${gateway.token}") { return (synth(403)); }
  if (req.method != "GET" && req.method != "HEAD") { return (synth(405)); }
  if (req.restarts == 0) {
    set req.grace = ${EVER};
    unset req.http.${staleAllowed};
    unset req.http.${staleChosen};
  }
  return (hash);
}

sub vcl_hash {
  hash_data(req.http.${zone});
  hash_data(req.http.${site});
  hash_data(req.http.${key});
  return (lookup);
}
`;

const visits = `
sub vcl_hit {
  if (obj.ttl >= 0s) { set req.http.${state} = "hit"; return (deliver); }
  set req.http.${state} = "stale";
  if (req.http.${staleChosen}) { return (deliver); }
  if (obj.ttl + std.duration(obj.http.${whileRevalidate}, 0s) >= 0s) { return (deliver); }
  if (!obj.http.${strict} && (req.http.${serveStale} ||
      obj.ttl + std.duration(obj.http.${ifError}, 0s) >= 0s)) { set req.http.${staleAllowed} = "1"; }
  set req.grace = 0s;
  return (restart);
}

sub vcl_miss { set req.http.${state} = "miss"; return (fetch); }
sub vcl_pass { set req.http.${state} = "bypass"; return (fetch); }

sub vcl_synth {
  if (req.http.${staleAllowed} && !req.http.${staleChosen}) {
    set req.http.${staleChosen} = "1";
    set req.grace = ${EVER};
    return (restart);
  }
  set resp.http.${FIELD.failed} = "1";
  return (deliver);
}

sub vcl_deliver {
  set resp.http.${state} = req.http.${state};
  if (obj.uncacheable) { set resp.http.${state} = "bypass"; }
  unset resp.http.X-Varnish;
  unset resp.http.Via;
  return (deliver);
}
`;

const origins = `
sub vcl_backend_fetch {
  if (bereq.is_bgfetch && bereq.http.${staleChosen}) { return (abandon); }
  return (fetch);
}

sub vcl_backend_response {
  if (beresp.status >= 500 && (bereq.is_bgfetch || bereq.http.${staleAllowed})) { return (abandon); }
  if (!beresp.http.${ttl}) {
    set beresp.uncacheable = true;
    set beresp.ttl = ${NOT_KEPT};
    return (deliver);
  }
  unset beresp.http.${INTERNAL}renewed;
  if (beresp.was_304) {
    set beresp.http.${INTERNAL}renewed = "1";
    # Fields of the 304 may have made the object one for a single Origin (engines/cdn/edge/vary.ts).
    if ((beresp.http.Access-Control-Allow-Origin != "*" ||
        (beresp.http.Timing-Allow-Origin && beresp.http.Timing-Allow-Origin != "*")) &&
        beresp.http.Vary !~ "(?i)(^|,)\\s*origin\\s*(,|$)") {
      if (beresp.http.Vary) { set beresp.http.Vary = beresp.http.Vary + ", origin"; }
      else { set beresp.http.Vary = "origin"; }
    }
  }
  set beresp.ttl = std.duration(beresp.http.${ttl} + "s", 0s);
  set beresp.grace = 0s;
  if (!beresp.http.${strict}) { set beresp.grace = ${EVER}; }
  set beresp.keep = 30d;
  if (beresp.http.${gzip}) { set beresp.do_gzip = true; }
  return (deliver);
}

sub vcl_backend_error {
  if (bereq.is_bgfetch || bereq.http.${staleAllowed}) { return (abandon); }
  set beresp.status = 502;
  set beresp.http.${FIELD.failed} = "1";
  set beresp.uncacheable = true;
  set beresp.ttl = 0s;
  return (deliver);
}
`;

/** The text, and a name derived from its content. */
export function renderVcl(gateway: VclOptions): { name: string; text: string } {
  const { host, port, token: own } = gateway;
  const isFit = isIP(host) && Number.isInteger(port) && /^[\w-]+$/.test(own);
  if (!isFit) throw new Error('not fit for the configuration of Varnish');
  const text = head(gateway) + visits + origins;
  return { name: `${VCL_PREFIX}${createHash('sha256').update(text).digest('hex').slice(0, 12)}`, text };
}

/** Prefix of the platform's configurations. */
export const VCL_PREFIX = 'platform_';
