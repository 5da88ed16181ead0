// What a server of container registries (OCI Distribution API 1.1, github.com/opencontainers/distribution-spec) is
// given: the rows behind it, and who may do what. Only layers are files of its own.

/** What may be done with the images of a registry. */
export type RegistryAction = 'pull' | 'push' | 'delete';

/** A registry as its server needs to know it. */
export interface ServedRegistry {
  id: string;
  project_id: string;
  size_bytes: number;
  /** Of the platform itself: its size is not limited. */
  is_own: boolean;
}

/** The name of a repository at the registry host: `acme/shop/web` is `shop/web` of the registry `acme`. */
export interface RepositoryName {
  registry: string;
  repository: string;
}

export interface StoredManifest {
  digest: string;
  media_type: string;
  content: Buffer;
}

export interface ManifestInput {
  repository: string;
  digest: string;
  media_type: string;
  artifact_type: string | null;
  /** Digest of the manifest that this one refers to, which may not be there. */
  subject: string | null;
  annotations: Record<string, string> | null;
  content: Buffer;
  /** Digests of layers and configuration. */
  blobs: string[];
  /** Digests of the manifests of an index. */
  manifests: string[];
  /** None: pushed by its digest alone. */
  tags: string[];
}

/** What referrers of a manifest show (distribution-spec, "Listing Referrers"). */
export interface Referrer {
  digest: string;
  media_type: string;
  artifact_type: string | null;
  annotations: Record<string, string> | null;
  size: number;
}

/** The rows behind a registry server. `subject`: id of the account that acts, for the activity; null: the platform. */
export interface RegistryContent {
  /** null: there is no such registry, or it is being deleted. */
  find(name: string): Promise<ServedRegistry | null>;
  /** Size in bytes; null where the registry has no such layer. It is kept from garbage collection for an hour. */
  blob(registryId: string, digest: string): Promise<number | null>;
  /**
   * Adds a layer. `place` puts its file where it belongs, while nobody else may remove the file of the digest.
   * @returns false where the registry would pass `sizeMax` bytes, and nothing is added
   */
  addBlob(
    registryId: string,
    blob: { digest: string; size: number; sizeMax: number; upload: string },
    place: () => Promise<void>,
  ): Promise<boolean>;
  deleteBlob(registryId: string, digest: string): Promise<'deleted' | 'in_use' | 'unknown'>;
  /** Runs `remove` where no registry has a row of the digest, while nobody may add one. */
  ifUnused(digest: string, remove: () => Promise<void>): Promise<void>;

  startUpload(registryId: string, repository: string): Promise<string>;
  hasUpload(registryId: string, repository: string, upload: string): Promise<boolean>;
  endUpload(upload: string): Promise<void>;

  /** @returns what the manifest names and the registry lacks; empty when it was stored */
  putManifest(registryId: string, manifest: ManifestInput, subject: string | null): Promise<string[]>;
  /** Stores a manifest that another server has, with the layers that it names. @param sizes by digest, in bytes */
  adoptManifest(
    registryId: string,
    manifest: ManifestInput,
    sizes: ReadonlyMap<string, number>,
    subject: string | null,
  ): Promise<void>;
  allTags(registryId: string): Promise<{ repository: string; tag: string; digest: string }[]>;
  /** Manifests without a tag that no index names. */
  untaggedManifests(registryId: string): Promise<{ repository: string; digest: string }[]>;
  /** @param reference a tag or a digest */
  manifest(registryId: string, repository: string, reference: string): Promise<StoredManifest | null>;
  /** @returns false where there is none */
  deleteManifest(registryId: string, repository: string, digest: string, subject: string | null): Promise<boolean>;
  /** @returns false where there is none */
  deleteTag(registryId: string, repository: string, tag: string, subject: string | null): Promise<boolean>;
  /** In the order of bytes, after `last`; null where the repository holds nothing. */
  tags(registryId: string, repository: string, last: string, limit: number): Promise<string[] | null>;
  referrers(registryId: string, repository: string, digest: string, artifactType: string | null): Promise<Referrer[]>;
}

/** What a token allows: `acme/shop/web` of type `repository`, or `catalog` of type `registry`. */
export interface RegistryAccess {
  type: 'repository' | 'registry';
  name: string;
  actions: readonly (RegistryAction | '*')[];
}

export type Verdict =
  /** `subject` for the record of who did it. */
  | { state: 'allowed'; subject: string }
  /** No token, or a wrong or an old one, or one that was asked for other rights. */
  | { state: 'unauthorized'; isKnown: boolean }
  | { state: 'denied' };

/** Who may do what: the token server of a registry (distribution.github.io/distribution/spec/auth/token). */
export interface RegistryTokens {
  /** @param wanted scopes as sent: `repository:acme/shop:pull,push`. @returns null for wrong credentials */
  issue(
    credentials: { username: string; password: string },
    wanted: readonly string[],
    address: string,
  ): Promise<{ token: string; expires_in: number; issued_at: string } | 'rate_limited' | null>;
  /** A token of the platform itself. */
  issueOwn(access: readonly RegistryAccess[]): string;
  /** Credentials of the platform that get tokens to pull from these registries. */
  issueLogin(registries: readonly string[]): { username: string; password: string };
  /** Credentials of the platform that get tokens to pull from one repository, for so many seconds. */
  issuePullLogin(repository: string, seconds: number): { username: string; password: string };
  /** How long tokens of others are good. */
  readonly lifetimeSeconds: number;
  /** Notes that the subject of a token used it, where it is a robot account. */
  recordUse(subject: string): void;
  verify(token: string | null, name: RepositoryName | null, action: RegistryAction): Promise<Verdict>;
}
