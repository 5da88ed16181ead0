<?php
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
['host' => $host, 'port' => $port, 'user' => $user, 'pass' => $password, 'path' => $path] = parse_url(getenv('DATABASE_URL'));
foreach ([0, MYSQLI_CLIENT_SSL] as $flags) {
    $connection = mysqli_init();
    if ($flags) $connection->ssl_set(null, null, getenv('DATABASE_CA_FILE'), null, null);
    $connection->real_connect($host, $user, $password, ltrim($path, '/'), $port, null, $flags);
    echo $connection->query("show session status like 'Ssl_cipher'")->fetch_row()[1] ? "encrypted\n" : "plain\n";
}
