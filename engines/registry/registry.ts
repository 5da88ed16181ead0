// Container registry servers.
import type { DriverContext } from '../../core/driver';
import type { RegistryAccess } from '../../core/protocols/registry_content';

export interface RegistryDriver {
  readonly name: string;
  /** Port of the server. */
  readonly port: number;
  /** Pull credentials of this host for a repository: `acme/shop/web`. */
  pullAccess(repository: string): Promise<{ url: string; token: string }>;
  /** Push credentials of this host for a repository. */
  pushAccess(repository: string): Promise<{ url: string; token: string }>;
  /** How this host itself does what these rights allow. */
  ownAccess(rights: readonly RegistryAccess[]): { url: string; token: string };
  /** With which a program elsewhere reads one repository, and nothing else, for so long. */
  pullLogin(repository: string, seconds: number): { username: string; password: string };
  /** With which a program reads all images of these registries for an hour. */
  loginFor(registries: readonly string[]): { username: string; password: string };
  /** Whether clients on this host connect without TLS. */
  readonly isPlain: boolean;
  /** Removes files of unreferenced layers. Missing files are ignored. */
  removeUnused(digests: readonly string[], ctx: DriverContext): Promise<void>;
  /** Removes interrupted uploads that are older than a day. */
  removeOldUploads(ctx: DriverContext): Promise<void>;
  /** Digests of all files, in batches. */
  listBlobs(ctx: DriverContext): AsyncIterable<string[]>;
  /** Set for an external server, whose state the rows follow. null: the rows are authoritative. */
  readonly mirror: RegistryMirror | null;
  close(): Promise<void>;
}

/** An external registry server that stores manifests and tags itself. */
export interface RegistryMirror {
  /** Lifetime of tokens issued before a change. */
  readonly tokenSeconds: number;
  /** Updates the rows of a registry from the state of the server. */
  compare(registry: string, ctx: DriverContext): Promise<void>;
  /** Removes manifests and layers from a repository: `acme/shop/web`. Missing ones are success. */
  remove(name: string, content: { manifests: string[]; blobs: string[] }, ctx: DriverContext): Promise<void>;
  /** Removes every tagged image of a registry. */
  removeAll(registry: string, ctx: DriverContext): Promise<void>;
}
