<?php
$parts = parse_url(getenv('DATABASE_URL'));
$dsn = "mysql:host={$parts['host']};port={$parts['port']};dbname=" . ltrim($parts['path'], '/');
foreach ([[], [PDO::MYSQL_ATTR_SSL_CA => getenv('MYSQL_ATTR_SSL_CA')]] as $options) {
    $pdo = new PDO($dsn, $parts['user'], $parts['pass'], $options);
    echo $pdo->query("show session status like 'Ssl_cipher'")->fetch()[1] ? "encrypted\n" : "plain\n";
}
