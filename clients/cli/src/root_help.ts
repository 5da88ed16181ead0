// `svc --help`: the commands by what people do with them.

const GROUPS: Record<string, Record<string, string>> = {
  Begin: {
    login: 'Log in to a server',
    logout: 'Log out, and revoke the access of this computer',
    whoami: 'Show who you are, and what your token may do',
    init: 'Create an application for this folder, and link it',
    link: 'Link this folder to an application',
    apps: 'List the applications of the project',
    projects: 'Projects, and which of them commands act in',
    members: 'Open the page of the members of the project',
    doctor: 'Check the connection, the login and this computer',
  },
  Deploy: {
    up: 'Deploy this folder',
    deploy: 'Deploy a commit, a branch or an image',
    deployments: 'List the deployments',
    cancel: 'Cancel a deployment or a run',
    rollback: 'Return to an earlier deployment',
    promote: 'Deploy what another application runs',
    previews: 'Previews of branches and pull requests',
    plan: 'Show what a file would change in the project',
    apply: 'Make the project what a file says',
    export: 'Write the project as a file',
    import: 'Write platform.yaml from files of another platform',
  },
  Run: {
    status: 'Show the application and its deployments',
    open: 'Open the application, or with --dashboard its page, in a browser',
    logs: 'Show or follow the log',
    metrics: 'Show processor, memory, requests and response times',
    ps: 'List instances',
    scale: 'Set the number of instances: svc scale web=3',
    restart: 'Restart the application or one process type',
    run: 'Run a command once: svc run -- npm run migrate',
    exec: 'Run a command, or open a shell, within a running instance',
    ssh: 'Open a shell beside the instances',
    schedules: 'Commands that run at certain times',
    env: 'Environment variables',
    domains: 'Custom domains',
    undo: 'Take back a change of settings, variables, records or scale',
    delete: 'Delete the application',
  },
  Data: {
    db: 'Databases',
    volumes: 'Volumes',
    attach: 'Attach a database or a volume to the application',
    detach: 'Detach it',
    attachments: 'List what is attached',
    buckets: 'Buckets of object storage',
    keys: 'Access keys of buckets',
    protect: 'Protect something with data from deletion',
    bin: 'What was deleted, and can be restored',
  },
  More: {
    approve: 'Calls that wait for a second person, and keys that are paused',
    api: 'Call any operation of the API',
    completion: 'Completion for bash, zsh or fish',
  },
};

export function rootHelp(): string {
  const width = Math.max(...Object.values(GROUPS).flatMap((group) => Object.keys(group).map((name) => name.length)));
  const groups = Object.entries(GROUPS).map(([title, group]) =>
    [title, ...Object.entries(group).map(([name, brief]) => `  ${name.padEnd(width)}  ${brief}`)].join('\n'),
  );
  return [
    'svc deploys and runs applications on a platform.',
    'Usage: svc <command> [flags]',
    ...groups,
    [
      'Help of a command: svc <command> --help',
      'Flags of all commands: --url, --token, --project, --app, --json, --field',
      'Variables: SVC_URL, SVC_TOKEN, SVC_PROJECT, SVC_APP, NO_COLOR, HTTPS_PROXY, NO_PROXY, NODE_EXTRA_CA_CERTS',
      'Exit codes: 0 done, 1 failed, 2 wrong command line, 3 not allowed, 4 not found, 5 time-out, 75 try again',
      'To operate a server, use another command on its host: platform --help',
    ].join('\n'),
  ].join('\n\n');
}
