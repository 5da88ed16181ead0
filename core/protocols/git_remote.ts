// How to reach a repository, as requests, jobs and drivers hand it on.

/**
 * How to reach a repository. `credential` never gets into arguments, addresses, files of the repository or messages.
 */
export interface GitRemote {
  /** https, http, ssh, scp-like, or file where the operator allows it; already checked against the settings. */
  address: string;
  credential?: { kind: 'basic'; username: string; password: string } | { kind: 'ssh_key'; private_key: string };
  /**
   * Line of known_hosts that was pinned for this repository: no other host key is accepted. null where none is pinned
   * yet, undefined where none ever is.
   */
  host_key?: string | null;
}
