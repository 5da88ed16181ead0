// Formats of references to external resources: URLs, Git addresses, images. Used through core/formats/formats.ts.

const URL_MAX = 2048;
const OCI_REFERENCE_MAX = 512;
const OCI_NAME_MAX = 255;

/** http or https, without credentials. Unmodified. */
export function httpUrl(text: string): string | null {
  return webUrl(text, /^https?:\/\//i);
}

export function httpsUrl(text: string): string | null {
  return webUrl(text, /^https:\/\//i);
}

/**
 * https, http, ssh, file, or `user@host:path`. No passwords, and nothing that git could parse as an option or as
 * another transport (`ext::`). The settings restrict the schemes further.
 */
export function gitUrl(text: string): string | null {
  if (text.length > URL_MAX || /[\s\\]/.test(text)) return null;
  if (/^https?:\/\//i.test(text)) return httpUrl(text);
  if (/^ssh:\/\//i.test(text)) return sshUrl(text);
  if (/^file:\/\//i.test(text)) return /^file:\/\/\/[^/]/i.test(text) ? text : null;
  return /^[A-Za-z0-9_][\w.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:(?![-:])[^\s:]+$/.test(text) ? text : null;
}

/**
 * A user name or password in an http address; in ssh addresses only a password, since the user name is part of the
 * address.
 */
export function hasGitCredential(text: string): boolean {
  return /^https?:\/\/[^/?#]*@/i.test(text) || /^ssh:\/\/[^/?#@]*:[^/?#]*@/i.test(text);
}

/**
 * The grammar of distribution (reference.Reference): `[host[:port]/]path[:tag][@digest]`.
 * @see https://github.com/distribution/reference
 */
export function ociReference(text: string): string | null {
  if (text.length > OCI_REFERENCE_MAX) return null;
  const match = OCI_REFERENCE.exec(text);
  return match && (match[1] ?? '').length <= OCI_NAME_MAX ? text : null;
}

const OCI_LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?';
const OCI_HOST = `(?:${OCI_LABEL}(?:\\.${OCI_LABEL})*|\\[[0-9a-fA-F:]+\\])(?::\\d{1,5})?`;
const OCI_COMPONENT = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const OCI_DIGEST = 'sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}';
const OCI_REFERENCE = new RegExp(
  `^((?:${OCI_HOST}/)?${OCI_COMPONENT}(?:/${OCI_COMPONENT})*)(?::[\\w][\\w.-]{0,127})?(?:@(?:${OCI_DIGEST}))?$`,
);

function webUrl(text: string, scheme: RegExp): string | null {
  if (text.length > URL_MAX || !scheme.test(text) || /[\s\\]/.test(text)) return null;
  const authority = text.replace(scheme, '').split(/[/?#]/, 1)[0] ?? '';
  return authority !== '' && !authority.includes('@') && URL.canParse(text) ? text : null;
}

function sshUrl(text: string): string | null {
  const match =
    /^ssh:\/\/(?:[A-Za-z0-9_][\w.-]*@)?(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-f:]+\])(?::\d{1,5})?\/[^-].*$/i.exec(text);
  return match && URL.canParse(text) ? text : null;
}
