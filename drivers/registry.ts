// Servers of container registries.
import type { DriverContext } from './driver';

export interface RegistryDriver {
  readonly name: string;
  /** Where the server listens. */
  readonly port: number;
  /** How this host itself reads a repository: `acme/shop/web`. */
  pullAccess(repository: string): Promise<{ url: string; token: string }>;
  /** Removes files of layers that no registry has any more. Digests without a file are passed over. */
  removeUnused(digests: readonly string[], ctx: DriverContext): Promise<void>;
  /** Removes what interrupted uploads have left, where they are older than a day. */
  removeOldUploads(ctx: DriverContext): Promise<void>;
  /** Digests of all files, in batches. */
  listBlobs(ctx: DriverContext): AsyncIterable<string[]>;
  close(): Promise<void>;
}
