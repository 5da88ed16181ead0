// What an image says of how it is run (image-spec, "Image Configuration"), as far as it counts here.

export interface ImageSettings {
  /** Entrypoint and Cmd, as they are executed without a shell. */
  command: string[];
  env: Record<string, string>;
  working_directory: string;
  user: { name: string; uid: number; gid: number; home: string; groups?: number[] };
  /**
   * Its files belong to this range of user ids of the host, whose first one it is: the image has users of its own.
   * Absent: all of its files and programs belong to one user.
   */
  first_user_id?: number;
  /** null: SIGTERM. */
  stop_signal: string | null;
  /** EXPOSE, where it names exactly one TCP port: the program listens there, whatever PORT says. */
  exposed_port?: number;
  /** HEALTHCHECK; `none` where the image says so, absent where it says nothing. */
  health_check?: ImageHealthCheck | 'none';
}

/** HEALTHCHECK of an image, with the defaults of Docker. */
export interface ImageHealthCheck {
  /** Executed without a shell; of CMD-SHELL the shell stands before it. */
  command: string[];
  interval_seconds: number;
  timeout_seconds: number;
  /** Failures do not count so long after the start. */
  start_period_seconds: number;
  /** Between checks until the first one succeeds. */
  start_interval_seconds: number;
  /** So many failures in a row make an instance unhealthy. */
  retries: number;
}

/** An image whose files are on the host. */
export interface PulledImage {
  /** As it was asked for, with the digest of what was found. */
  reference: string;
  /** Of the manifest for the platform of this host. */
  digest: string;
  /** Digests of the unpacked layers, the lowest first. */
  layers: string[];
  settings: ImageSettings;
}

/** The command of an image as one line for people; a shell reads the same words from it. */
export function commandLineOf({ command }: Pick<ImageSettings, 'command'>): string {
  return command.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : quoted(word))).join(' ');
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
