// The run configuration of an image (image-spec, "Image Configuration"), as far as it is supported.

export interface ImageSettings {
  /** Entrypoint and Cmd, executed without a shell. */
  command: string[];
  env: Record<string, string>;
  working_directory: string;
  user: { name: string; uid: number; gid: number; home: string; groups?: number[] };
  /**
   * The first id of the host's user id range that owns its files: the image has several users. Absent: one user owns
   * all of its files and programs.
   */
  first_user_id?: number;
  /** null: SIGTERM. */
  stop_signal: string | null;
  /** EXPOSE, if it names exactly one TCP port: the program listens there, regardless of PORT. */
  exposed_port?: number;
  /** HEALTHCHECK; `none` where the image disables it, absent where it has none. */
  health_check?: ImageHealthCheck | 'none';
}

/** HEALTHCHECK of an image, with Docker's defaults. */
export interface ImageHealthCheck {
  /** Executed without a shell; for CMD-SHELL it includes the shell. */
  command: string[];
  interval_seconds: number;
  timeout_seconds: number;
  /** Time after the start in which failures do not count. */
  start_period_seconds: number;
  /** Interval until the first successful check. */
  start_interval_seconds: number;
  /** Consecutive failures that make an instance unhealthy. */
  retries: number;
}

/** An image whose files are on the host. */
export interface PulledImage {
  /** The requested reference, with the resolved digest. */
  reference: string;
  /** Digest of the manifest for the platform of this host. */
  digest: string;
  /** Digests of the unpacked layers, the lowest first. */
  layers: string[];
  settings: ImageSettings;
}

/** The command of an image as one line for display; a shell parses it to the same words. */
export function commandLineOf({ command }: Pick<ImageSettings, 'command'>): string {
  return command.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : quoted(word))).join(' ');
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
