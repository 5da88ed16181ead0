// Which certificate of a validated chain ends first. Node.js does not say by which path a server was trusted, and what
// a server sends may contain more: in 2021, a cross-signed root that had expired and that no client used.
import type { X509Certificate } from 'node:crypto';

/** Further certificates of a server are not looked at: chains have two to four. */
const SENT_MAX = 8;

/** Roots by their subject. */
export type Roots = ReadonlyMap<string, readonly X509Certificate[]>;

/** Certificates as a server has sent them, its own first. */
export function presentedCertificates(own: X509Certificate | undefined): X509Certificate[] {
  const chain: X509Certificate[] = [];
  for (let one = own; one && chain.length < SENT_MAX; one = one.issuerCertificate) chain.push(one);
  return chain;
}

/**
 * Of the path to a root that stays valid longest, the certificate that ends first: until then a client that tries all
 * paths trusts the server. Of a path, root included (RFC 5280 §6.1.3). null: no path leads to one of these roots.
 */
export function firstToExpire(sent: readonly X509Certificate[], roots: Roots): X509Certificate | null {
  const edges = sent.map((one) => ({
    one,
    roots: (roots.get(one.issuer) ?? []).filter((root) => isIssuedBy(one, root)),
    sent: sent.filter((other) => other !== one && isIssuedBy(one, other)),
  }));
  const first = new Map<X509Certificate, X509Certificate>();
  // As many rounds as the longest path has steps.
  for (let round = 0; round < sent.length; round += 1) {
    for (const { one, roots: above, sent: between } of edges) {
      const ends = [...above, ...between.flatMap((other) => first.get(other) ?? [])].map((limit) =>
        earlier(one, limit),
      );
      const best = ends.reduce<X509Certificate | undefined>(
        (a, b) => (a && certificateExpiryOf(a) >= certificateExpiryOf(b) ? a : b),
        undefined,
      );
      if (best) first.set(one, best);
    }
  }
  return (sent[0] && first.get(sent[0])) ?? null;
}

/** When a certificate ends, in milliseconds; NaN where that is no time. */
export function certificateExpiryOf({ validTo }: X509Certificate): number {
  return Date.parse(validTo);
}

/** A name of a certificate for people: the common name, else the organisation, else all of it. */
export function subjectOf({ subject }: X509Certificate): string {
  const fields = new Map(subject.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line] as const));
  const text = fields.get('CN')?.slice(3) ?? fields.get('O')?.slice(2) ?? subject;
  const shown = text.replace(/[^\p{L}\p{N}\p{P}\p{S} ]+/gu, ' ').trim();
  return shown.slice(0, 100) || 'without a name';
}

function earlier(a: X509Certificate, b: X509Certificate): X509Certificate {
  return certificateExpiryOf(b) < certificateExpiryOf(a) ? b : a;
}

function isIssuedBy(one: X509Certificate, issuer: X509Certificate): boolean {
  try {
    return one.checkIssued(issuer) && one.verify(issuer.publicKey);
  } catch {
    // A key of an algorithm that OpenSSL does not know.
    return false;
  }
}
