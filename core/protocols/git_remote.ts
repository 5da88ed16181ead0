// Address and credentials of a repository, as passed between requests, jobs and drivers.

/** Access to a repository. `credential` must never appear in arguments, URLs, files of the repository or messages. */
export interface GitRemote {
  /** https, http, ssh, scp-like, or file where the operator allows it; already validated against the settings. */
  address: string;
  credential?: { kind: 'basic'; username: string; password: string } | { kind: 'ssh_key'; private_key: string };
  /**
   * The pinned known_hosts line of this repository: other host keys are rejected. null where none is pinned yet,
   * undefined where none ever is.
   */
  host_key?: string | null;
}
