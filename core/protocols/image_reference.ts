// Image references in Docker's syntax: `nginx` is docker.io/library/nginx:latest.

export interface ImageReference {
  /** Including a port, if there is one. */
  host: string;
  repository: string;
  tag: string | null;
  digest: string | null;
}

const DOCKER_HUB = 'docker.io';

/** @param text a valid reference, see core/formats/reference_formats.ts `ociReference` */
export function parseImageReference(text: string): ImageReference {
  const [, rest = '', digest = null] = /^([^@]+)(?:@(.+))?$/.exec(text) ?? [];
  const [, name = '', tag = null] = /^(.*?)(?::([\w][\w.-]*))?$/.exec(rest) ?? [];
  const slash = name.indexOf('/');
  const first = slash < 0 ? '' : name.slice(0, slash);
  // Docker's rule: a first part with a dot or a port, or localhost, is a host.
  const hasHost = /[.:]/.test(first) || first === 'localhost' || /[A-Z]/.test(first);
  const host = hasHost ? first : DOCKER_HUB;
  const path = hasHost ? name.slice(slash + 1) : name;
  const repository = host === DOCKER_HUB && !path.includes('/') ? `library/${path}` : path;
  return { host, repository, tag: tag ?? (digest === null ? 'latest' : null), digest };
}

/** The reference for the registry: a digest takes precedence over a tag. */
export function manifestReferenceOf({ tag, digest }: ImageReference): string {
  return digest ?? tag ?? 'latest';
}

/** The reference with its resolved digest, which identifies the running image. */
export function pinnedReference(text: string, digest: string): string {
  return text.includes('@') ? text : `${text}@${digest}`;
}
