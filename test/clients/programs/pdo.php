<?php
$address = parse_url(getenv('DATABASE_URL'));
$place = sprintf('pgsql:host=%s;port=%d;dbname=%s', $address['host'], $address['port'], ltrim($address['path'], '/'));
$connection = new PDO($place, $address['user'], $address['pass']);
$ssl = $connection->query('select ssl from pg_stat_ssl where pid = pg_backend_pid()')->fetchColumn();
echo $ssl ? 'encrypted' : 'plain';
