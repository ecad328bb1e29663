import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** Connector/J, or MariaDB's (AS=mariadb), as a plain client: does what tools do when they connect; the first step that fails ends it. */
public class Jdbc {
    interface Step {
        void run(Connection connection) throws SQLException;
    }

    static void step(Connection connection, String name, Step step) {
        try {
            step.run(connection);
            System.out.println("done " + name);
        } catch (Throwable error) {
            System.out.println("failed " + name + ": " + error.getMessage());
        }
    }

    static Step query(String sql) {
        return connection -> {
            try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery(sql)) {
                if (!result.next()) throw new SQLException("no row");
            }
        };
    }

    public static void main(String[] args) {
        boolean isMariadb = "mariadb".equals(System.getenv("AS"));
        String off = isMariadb ? "disable" : "DISABLED";
        String on = isMariadb ? "trust" : "REQUIRED";
        String tls = System.getenv("TLS") != null ? on : off + "&allowPublicKeyRetrieval=true";
        String url = "jdbc:" + (isMariadb ? "mariadb" : "mysql") + "://127.0.0.1:" + args[0] + "/?sslMode=" + tls;
        try (Connection connection = DriverManager.getConnection(url, args[1], args[2])) {
            System.out.println("done connect");
            step(connection, "isValid", c -> { if (!c.isValid(10)) throw new SQLException("the connection is not valid"); });
            step(connection, "SELECT 1", query("SELECT 1"));
            step(connection, "SHOW BINARY LOG STATUS", query("SHOW BINARY LOG STATUS"));
            step(connection, "SHOW BINARY LOGS", query("SHOW BINARY LOGS"));
            step(connection, "SHOW VARIABLES", query("SHOW VARIABLES"));
            step(connection, "setAutoCommit, commit, rollback", c -> {
                c.setAutoCommit(false);
                c.commit();
                c.rollback();
                c.setAutoCommit(true);
            });
            step(connection, "getTransactionIsolation", Connection::getTransactionIsolation);
            step(connection, "setReadOnly", c -> c.setReadOnly(true));
            step(connection, "setCatalog", c -> c.setCatalog("compat"));
            step(connection, "metadata of columns", c -> {
                try (ResultSet columns = c.getMetaData().getColumns("compat", null, "t", null)) {
                    if (!columns.next()) throw new SQLException("no column");
                }
            });
            step(connection, "prepared statement", c -> {
                try (PreparedStatement statement = c.prepareStatement("SELECT COUNT(*) FROM compat.t WHERE id > ?")) {
                    statement.setInt(1, 0);
                    statement.executeQuery();
                }
            });
        } catch (SQLException error) {
            System.out.println("failed connect: " + error.getMessage());
        }
    }
}
