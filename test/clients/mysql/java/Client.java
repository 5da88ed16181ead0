import java.sql.*;

/** A client of MariaDB by the address with `jdbc:` before it, of MySQL Connector/J, and by parts, of MariaDB's. */
public class Client {
  public static void main(String[] args) throws Exception {
    String address = System.getenv("DATABASE_URL");
    java.net.URI uri = new java.net.URI(address);
    String[] user = uri.getUserInfo().split(":");
    String mariadb = "jdbc:mariadb://" + uri.getAuthority().replaceFirst(".*@", "") + uri.getPath();
    String file = System.getenv("DATABASE_CA_FILE");
    ask("jdbc:" + address, null, null);
    ask(mariadb, user[0], user[1]);
    ask(mariadb + "?sslMode=verify-full&serverSslCert=" + file, user[0], user[1]);
  }

  private static void ask(String address, String user, String password) throws Exception {
    try (Connection connection = user == null
            ? DriverManager.getConnection(address)
            : DriverManager.getConnection(address, user, password);
        ResultSet rows = connection.createStatement().executeQuery("show session status like 'Ssl_cipher'")) {
      rows.next();
      System.out.println(rows.getString(2).isEmpty() ? "plain" : "encrypted");
    }
  }
}
